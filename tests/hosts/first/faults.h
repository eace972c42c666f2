/* The cases of client.c about several processes, and about missing and damaged files. */
#ifndef FIRST_FAULTS_H
#define FIRST_FAULTS_H

#include "kit.h"

/* Runs this program with arguments and returns its exit status; its output goes to *out. */
static int run_self(const char *a, const char *b, char *out, size_t cap) {
	int fd[2];
	if (pipe(fd)) {
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		dup2(fd[1], 1);
		close(fd[0]);
		close(fd[1]);
		execl(self, self, a, b, (char *)NULL);
		_exit(127);
	}
	close(fd[1]);
	size_t n = 0;
	ssize_t got;
	while (n + 1 < cap && (got = read(fd[0], out + n, cap - 1 - n)) > 0) {
		n += (size_t)got;
	}
	out[n] = 0;
	close(fd[0]);
	int status = 0;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void two_processes(void) {
	MeruHandle *db = open_all(in("locked"), NULL);
	put(db, 1, "a");
	char out[4096], pid[32];
	CHECK(run_self("open", in("locked"), out, sizeof out) == 11, "the second process: %s", out);
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	CHECK(strstr(out, pid), "the message does not name the holder %s: %s", pid, out);
	CHECK(has(db, 1, "a"), "the first one goes on");
	EXPECT(MeruStatus_Ok, meru_close_free(db, &err));
	CHECK(run_self("open", in("locked"), out, sizeof out) == 0, "once it is free: %s", out);
}

static void overwrite(const char *path, long offset, const char *bytes) {
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0, "%s", path);
	off_t at = offset < 0 ? lseek(fd, 0, SEEK_END) + offset : offset;
	CHECK(pwrite(fd, bytes, strlen(bytes), at) == (ssize_t)strlen(bytes), "pwrite");
	close(fd);
}

static void damage(void) {
	/* a file where the directory should be; a directory under a file */
	FILE *f = fopen(in("file"), "w");
	CHECK(f && !fclose(f), "file");
	MeruHandle *db = NULL;
	MeruOpenOptions o = options_all(in("file/below"));
	EXPECT_ABOUT(MeruStatus_ErrIo, "file/below", meru_open(&o, NULL, &db, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_open_existing(in("nowhere"), 0, NULL, &db, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_open_existing(in("nowhere"), 1, NULL, &db, &err));
	MeruManifestInfo *info = NULL;
	EXPECT(MeruStatus_ErrNotFound, meru_manifest_info(NULL, in("nowhere"), &info, &err));
	CHECK(access(in("nowhere"), F_OK) != 0, "an open made a directory");

	/* a damaged data file */
	db = open_all(in("damaged"), NULL);
	for (int i = 0; i < 100; i++) {
		put(db, i, "a");
	}
	EXPECT(MeruStatus_Ok, meru_close_free(db, &err));
	EXPECT(MeruStatus_Ok, meru_manifest_info(NULL, in("damaged"), &info, &err));
	CHECK(info->parquet_count == 1, "%zu files", (size_t)info->parquet_count);
	overwrite(info->parquet_paths[0], -40, "#### garbage where the footer was ####");
	EXPECT(MeruStatus_Ok, meru_open_existing(in("damaged"), 0, NULL, &db, &err));
	MeruScanResult *r = NULL;
	char *err = NULL;
	int status = meru_scan(db, NULL, 0, NULL, 0, &r, &err);
	CHECK(status == MeruStatus_ErrParquet || status == MeruStatus_ErrCorruption, "a damaged data file: %d %s", status,
		  err);
	CHECK(err && strstr(err, ".parquet"), "the message does not name the file: %s", err ? err : "NULL");
	meru_free_string(err);
	meru_manifest_info_free(info);
	meru_free(db);

	/* a damaged manifest */
	db = open_all(in("bad-manifest"), NULL);
	EXPECT(MeruStatus_Ok, meru_close_free(db, &err));
	char path[1200];
	snprintf(path, sizeof path, "%s/metadata/v1.manifest.bin", in("bad-manifest"));
	overwrite(path, 9, "garbagegarbage");
	EXPECT_ABOUT(MeruStatus_ErrCorruption, "manifest", meru_open_existing(in("bad-manifest"), 0, NULL, &db, &err));
	EXPECT_ABOUT(MeruStatus_ErrCorruption, "manifest", meru_open_existing(in("bad-manifest"), 1, NULL, &db, &err));
}

static void forked_child(void) {
	MeruHandle *db = open_all(in("fork"), NULL);
	put(db, 1, "a");
	MeruScanResult *r = NULL;
	EXPECT(MeruStatus_Ok, meru_scan(db, NULL, 0, NULL, 0, &r, &err));
	pid_t pid = fork();
	if (pid == 0) {
		char *err = NULL;
		int found, bad = 0;
		MeruRow *row;
		MeruValue key[2] = {v_text("a"), v_i32(1)};
		alarm(20); /* a hang is a failure */
		bad |= meru_get(db, key, 2, &found, &row, &err) != 16 || !err || !strstr(err, "fork");
		meru_free_string(err);
		bad |= meru_flush(db, NULL) != 16;
		bad |= meru_close_free(db, NULL) != 16;
		meru_free(db);
		bad |= meru_is_closed(db) != 1;
		meru_scan_result_free(r); /* C memory */
		_exit(bad ? 1 : 0);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child: status %x", status);
	CHECK(has(db, 1, "a"), "the parent goes on");
	meru_scan_result_free(r);
	EXPECT(MeruStatus_Ok, meru_close_free(db, &err));
}

#endif
