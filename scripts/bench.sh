#!/bin/sh
# bench.sh PROGRAM [arguments]: runs bench/PROGRAM (a Go program) or bench/PROGRAM.py. Without a name: which there are.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

programs() {
	find bench \( -name main.go -o -name '*.py' \) 2>/dev/null | sed 's,^bench/,,; s,/*main\.go$,,; s,\.py$,,' | sort
}

if [ $# -eq 0 ]; then
	found=$(programs)
	[ -n "$found" ] || die "there is no program under bench/"
	printf './dev bench %s\n' $found
	exit 0
fi
program=$1
shift
if [ -f "bench/$program.py" ]; then
	exec build/venv/bin/python "bench/$program.py" "$@"
fi
[ -f "bench/$program/main.go" ] || die "there is no bench/$program: $(programs | tr '\n' ' ')"
# A program that measures us beside others has a module of its own: ours stays free of them.
if [ -f "bench/$program/go.mod" ]; then
	go build -C "bench/$program" -trimpath -ldflags='-s -w' -o "$PWD/build/bench-$program" .
	exec "build/bench-$program" "$@"
fi
exec go run -trimpath -ldflags='-s -w' "./bench/$program" "$@"
