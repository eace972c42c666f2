"""Fixtures of the host tests, and their closing line."""

import os

import pytest

import support


def pytest_addoption(parser):
    parser.addoption("--extension", required=True, help="path of merutable.duckdb_extension")


@pytest.fixture(scope="session")
def extension(request):
    path = os.path.abspath(request.config.getoption("--extension"))
    support.EXTENSION = path
    return path


@pytest.fixture
def connect(extension):
    """A function that opens a DuckDB instance with the extension loaded; all are closed at the end."""
    opened = []

    def open_instance(**config):
        opened.append(support.connect(**config))
        return opened[-1]

    yield open_instance
    for connection in opened:
        connection.close()


@pytest.fixture
def database(tmp_path):
    """The path of a database that does not exist yet."""
    return str(tmp_path / "db")


@pytest.fixture
def child(extension):
    """Starts Python children (support.Child); what still runs at the end is killed."""
    started = []

    def start(code, *arguments):
        started.append(support.Child(code, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def pytest_terminal_summary(terminalreporter):
    def count(*names):
        return sum(len(terminalreporter.stats.get(name, [])) for name in names)

    for report in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"skipped: {report.nodeid}: {report.longrepr[2]}")
    skipped = f", {count('skipped')} skipped" if count("skipped") else ""
    terminalreporter.write_line(f"{count('passed')} passed, {count('failed', 'error')} failed{skipped}")
