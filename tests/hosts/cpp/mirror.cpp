// Files of snapshots, mirrors, clones, and secrets that are not shown.
#include <arpa/inet.h>
#include <chrono>
#include <netinet/in.h>
#include <sys/socket.h>

#include "kit.hpp"

namespace {

std::string ReadFile(MeruFile *file, uint64_t offset, size_t n) {
	std::string out(n, '?');
	uintptr_t got = 0;
	OK(meru_file_read(file, offset, out.empty() ? nullptr : &out[0], n, &got, &err));
	out.resize(got);
	return out;
}

void SnapshotFiles() {
	auto db = OpenSimple("snapfile");
	for (int i = 0; i < 50; i++) {
		PutSimple(db, i, "value", i);
	}
	OK(meru_flush(db, &err));
	MeruSnapshot *snap = nullptr;
	OK(meru_snapshot_acquire(db, &snap, &err));
	MeruDataFile info{};
	OK(meru_snapshot_data_file(snap, 0, &info, &err));
	MeruFile *file = nullptr, *other = nullptr;
	OK(meru_snapshot_file_open(snap, 0, &file, &err));
	OK(meru_snapshot_file_open(snap, 0, &other, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "index", meru_snapshot_file_open(snap, 1, &other, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "file", meru_snapshot_file_open(snap, 0, nullptr, &err));
	auto size = info.size;
	meru_snapshot_release(snap);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "snapshot", meru_snapshot_file_open(snap, 0, &file, &err));

	CHECK(meru_file_size(file) == size && size > 8, "size %llu", (unsigned long long)meru_file_size(file));
	auto whole = ReadFile(file, 0, size);
	CHECK(whole.size() == size && whole.substr(0, 4) == "PAR1" && whole.substr(size - 4) == "PAR1", "whole file");
	CHECK(ReadFile(file, 5, 7) == whole.substr(5, 7), "a range");
	CHECK(ReadFile(file, size - 3, 10) == whole.substr(size - 3), "a range over the end");
	CHECK(ReadFile(file, size, 10).empty() && ReadFile(file, size + 9, 10).empty(), "behind the end");
	CHECK(ReadFile(file, 0, 0).empty(), "nothing");
	uintptr_t got = 7;
	char byte = 0;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "buffer", meru_file_read(file, 0, nullptr, 1, &got, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "got", meru_file_read(file, 0, &byte, 1, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "offset", meru_file_read(file, UINT64_MAX, &byte, 1, &got, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "file", meru_file_read(nullptr, 0, &byte, 1, &got, &err));
	CHECK(got == 7, "an output that an error leaves alone");
	// It is readable as long as it is open, whatever becomes of the database.
	OK(meru_drop_table(db, &err));
	OK(meru_close_free(db, &err));
	CHECK(ReadFile(file, 0, size) == whole, "after the table was dropped");
	meru_file_free(other);
	CHECK(ReadFile(file, 0, 4) == "PAR1", "after another handle was freed");
	meru_file_free(file);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "file", meru_file_read(file, 0, &byte, 1, &got, &err));
	CHECK(meru_file_size(nullptr) == 0 && meru_file_size(file) == 0, "no file");
	meru_file_free(nullptr);
}

// All that an inspection gives of a kind, as one text.
std::string Texts(MeruHandle *db, const char *what, int columns) {
	std::string out;
	ArrowArrayStream stream{};
	OK(meru_inspect(db, what, &stream, &err));
	Drain(stream, [&](const ArrowArray &a) {
		for (int64_t i = 0; i < a.length; i++) {
			for (int c = 0; c < columns; c++) {
				out += StringAt(*a.children[c], i) + (c + 1 < columns ? "=" : " ");
			}
		}
	});
	return out;
}

void Secrets() {
	auto db = OpenSimple("secrets", {"s3_access_key_id", "AKIDKEY", "s3_secret_access_key", "hush-hush",
									 "s3_session_token", "token-token", "s3_region", "eu-west-1"});
	auto options = Texts(db, "options", 2);
	CHECK(options.find("s3_secret_access_key=<hidden>") != std::string::npos, "%s", options.c_str());
	CHECK(options.find("s3_session_token=<hidden>") != std::string::npos, "%s", options.c_str());
	CHECK(options.find("s3_region=eu-west-1") != std::string::npos, "%s", options.c_str());
	char *json = nullptr;
	OK(meru_stats_json(db, &json, &err));
	options += json;
	meru_free_string(json);
	for (auto secret : {"AKIDKEY", "hush-hush", "token-token"}) {
		CHECK(options.find(secret) == std::string::npos, "%s is shown", secret);
	}
	// Stored beside the table they are not, either.
	OK(meru_close_free(db, &err));
	CHECK(system(("grep -rqe hush-hush -e token-token -e AKIDKEY '" + In("secrets") + "'").c_str()) != 0,
		  "a secret is on disk");
}

int AfterSome(void *asked) {
	return ++*static_cast<int *>(asked) > 3;
}

// A store that takes requests and never answers: whoever waits for it can be stopped.
void Interrupts() {
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in address{};
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t length = sizeof(address);
	CHECK(bind(listener, reinterpret_cast<sockaddr *>(&address), length) == 0 && listen(listener, 16) == 0 &&
			  getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length) == 0,
		  "a listener");
	auto endpoint = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
	auto options = meru_options_new();
	for (auto option : {std::pair<const char *, const char *>{"s3_endpoint", endpoint.c_str()},
						{"s3_access_key_id", "a"},
						{"s3_secret_access_key", "b"},
						{"read_only", "true"}}) {
		OK(meru_options_set(options, option.first, option.second, &err));
	}
	int asked = 0;
	meru_options_set_interrupt(options, AfterSome, &asked);
	MeruHandle *db = nullptr;
	auto began = std::chrono::steady_clock::now();
	EXPECT(MeruStatus_ErrCancelled, meru_open_with("s3://bucket/prefix", options, &db, &err));
	CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10) && asked == 4, "asked %d times", asked);
	meru_options_set_interrupt(options, nullptr, nullptr);
	meru_options_set_interrupt(nullptr, AfterSome, &asked);
	meru_options_free(options);
	close(listener);

	// Nobody is stopped who does not wait.
	db = OpenSimple("interrupts");
	PutSimple(db, 1, "a", 1);
	OK(meru_flush(db, &err));
	MeruSnapshot *snap = nullptr;
	OK(meru_snapshot_acquire(db, &snap, &err));
	MeruFile *file = nullptr;
	OK(meru_snapshot_file_open(snap, 0, &file, &err));
	meru_file_set_interrupt(file, AfterSome, &asked);
	CHECK(ReadFile(file, 0, 4) == "PAR1" && ReadFile(file, meru_file_size(file), 4).empty(), "read");
	meru_file_set_interrupt(nullptr, AfterSome, &asked);
	meru_file_free(file);
	meru_snapshot_release(snap);
	MeruWatch watch{AfterSome, nullptr, &asked};
	OK(meru_refresh_watched(db, &watch, &err));
	OK(meru_close_free(db, &err));
}

void NoMirror() {
	auto db = OpenSimple("nomirror");
	int reached = 7;
	auto began = std::chrono::steady_clock::now();
	OK(meru_mirror_wait(db, 600000, nullptr, &reached, &err));
	CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(60), "it waited for nothing");
	CHECK(reached == 0, "reached %d", reached);
	CHECK(Texts(db, "mirror_status", 2) == "=off ", "%s", Texts(db, "mirror_status", 2).c_str());
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "reached", meru_mirror_wait(db, 1, nullptr, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_mirror_wait(nullptr, 1, nullptr, &reached, &err));
	OK(meru_close_free(db, &err));
}

void MirrorAndClone() {
	auto mirror = In("mirror-there");
	auto db = OpenSimple("mirror-here", {"mirror", ("file://" + mirror).c_str()});
	for (int i = 0; i < 100; i++) {
		PutSimple(db, i, "value", i);
	}
	OK(meru_flush(db, &err));
	int reached = 0;
	OK(meru_mirror_wait(db, 60000, nullptr, &reached, &err));
	CHECK(reached == 1, "after a minute: %s", Texts(db, "mirror_status", 2).c_str());
	CHECK(Texts(db, "mirror_status", 1) == "file://" + mirror + " ", "%s", Texts(db, "mirror_status", 1).c_str());

	MeruHandle *reader = nullptr;
	OK(meru_open_existing(mirror.c_str(), 1, nullptr, &reader, &err));
	CHECK(CountRows(reader) == 100, "%lld rows at the mirror", (long long)CountRows(reader));
	OK(meru_close_free(reader, &err));

	MeruCloneReport report{};
	auto copy = In("mirror-clone");
	OK(meru_clone(("file://" + mirror).c_str(), copy.c_str(), nullptr, 0, nullptr, &report, &err));
	CHECK(report.tables == 1 && report.files >= 1 && report.bytes > 0 && report.rows == 100 && report.version > 0,
		  "report: %llu tables, %llu rows", (unsigned long long)report.tables, (unsigned long long)report.rows);
	EXPECT_ABOUT(MeruStatus_ErrAlreadyExists, "mirror-clone",
				 meru_clone(mirror.c_str(), copy.c_str(), nullptr, 0, nullptr, &report, &err));
	auto clone = Open(copy);
	PutSimple(clone, 1000, "own", 1);
	CHECK(CountRows(clone) == 101 && CountRows(db) == 100, "a clone is a database of its own");
	OK(meru_close_free(clone, &err));
	ArrowArrayStream found{};
	OK(meru_verify_with(copy.c_str(), nullptr, nullptr, &found, &err));
	CHECK(Drain(found) > 2, "verified");

	EXPECT_ABOUT(MeruStatus_ErrNotFound, "mirror-none",
				 meru_clone(In("mirror-none").c_str(), In("x").c_str(), nullptr, 0, nullptr, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "source", meru_clone(nullptr, "x", nullptr, 0, nullptr, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "dir", meru_clone("x", nullptr, nullptr, 0, nullptr, nullptr, &err));
	CHECK(access(In("x").c_str(), F_OK) != 0, "a clone that failed left something");
	OK(meru_close_free(db, &err));
}

} // namespace

void MirrorCases() {
	check_run("data files that the host reads", SnapshotFiles);
	check_run("secrets are not shown", Secrets);
	check_run("a store that does not answer", Interrupts);
	check_run("a database without a mirror", NoMirror);
	check_run("a mirror and its clone", MirrorAndClone);
}
