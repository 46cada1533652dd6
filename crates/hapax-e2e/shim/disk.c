/*
 * A disk that fails on demand, preloaded between a process and libc with LD_PRELOAD.
 *
 * Only files below one directory are affected. The environment configures the faults:
 *
 *   HAPAX_DISK_DIR      the directory; canonical, without a slash at its end
 *   HAPAX_DISK_KILL_AT  kill the process at its Nth changing call (write, sync, truncate, rename, unlink, create)
 *   HAPAX_DISK_KILL_HOW before | after | torn: where in that call; torn writes half of it first
 *   HAPAX_DISK_EIO_AT   fail the Nth sync with EIO
 *   HAPAX_DISK_FULL     while a file of this name exists, writes fail with ENOSPC (every other one after half)
 *   HAPAX_DISK_TRACE    append every change to this file, and every line written to standard output with it
 *
 * A trace entry is: kind (1 byte), length of path (4), offset (8), length of data (8), path, data; numbers in
 * the machine's byte order. With a trace, calls are serialised, so that the trace has the disk's order.
 *
 * System calls are made directly, so no symbol has to be resolved before the first of them. Writes to mapped memory are
 * not seen; SQLite's shared index (-shm) is such memory, holds nothing durable and is left out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum how { BEFORE, AFTER, TORN };

static char dir[PATH_MAX];
static size_t dir_len;
static const char *full_path;
static long kill_at, eio_at;
static enum how kill_how;
static int trace = -1;
static atomic_long calls, syncs, refusals;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void) {
    const char *value = getenv("HAPAX_DISK_DIR");
    if (!value) return;
    if ((value = getenv("HAPAX_DISK_KILL_AT"))) kill_at = atol(value);
    if ((value = getenv("HAPAX_DISK_EIO_AT"))) eio_at = atol(value);
    if ((value = getenv("HAPAX_DISK_KILL_HOW")))
        kill_how = !strcmp(value, "torn") ? TORN : !strcmp(value, "after") ? AFTER : BEFORE;
    full_path = getenv("HAPAX_DISK_FULL");
    if ((value = getenv("HAPAX_DISK_TRACE")))
        trace = syscall(SYS_openat, AT_FDCWD, value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    snprintf(dir, sizeof dir, "%s", getenv("HAPAX_DISK_DIR"));
    dir_len = strlen(dir);
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static int watched_path(const char *path) {
    if (!dir_len || strncmp(path, dir, dir_len) || (path[dir_len] != '/' && path[dir_len] != 0)) return 0;
    size_t len = strlen(path);
    return len < 4 || strcmp(path + len - 4, "-shm");
}

/* Asks the kernel each time: a descriptor may have been duplicated, and a file renamed. */
static int watched_fd(int fd, char *path) {
    int saved = errno;
    char link[64];
    if (!dir_len) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    errno = saved;
    if (len <= 0) return 0;
    path[len] = 0;
    return watched_path(path);
}

static int absolute(const char *path, char *out) {
    if (!dir_len) return 0;
    if (path[0] == '/') return snprintf(out, PATH_MAX, "%s", path) < PATH_MAX && watched_path(out);
    char here[PATH_MAX];
    if (syscall(SYS_getcwd, here, sizeof here) < 0) return 0;
    return snprintf(out, PATH_MAX, "%s/%s", here, path) < PATH_MAX && watched_path(out);
}

static void note(char kind, const char *path, uint64_t offset, const void *data, uint64_t len) {
    if (trace < 0) return;
    int saved = errno;
    char head[21];
    uint32_t path_len = strlen(path);
    head[0] = kind;
    memcpy(head + 1, &path_len, 4);
    memcpy(head + 5, &offset, 8);
    memcpy(head + 13, &len, 8);
    struct iovec parts[3] = {{head, sizeof head}, {(void *)path, path_len}, {(void *)data, len}};
    syscall(SYS_writev, trace, parts, 3);
    errno = saved;
}

static void enter(void) { if (trace >= 0) pthread_mutex_lock(&order); }
static void leave(void) { if (trace >= 0) pthread_mutex_unlock(&order); }

/* Counts a changing call; true when the process must die in this one. */
static int last_call(void) {
    return atomic_fetch_add(&calls, 1) + 1 == kill_at;
}

static int is_full(void) {
    return full_path && syscall(SYS_faccessat, AT_FDCWD, full_path, F_OK) == 0;
}

/* One write to a watched file, positioned or not (offset < 0). */
static ssize_t write_watched(int fd, const char *path, const void *data, size_t len, off_t offset) {
    enter();
    int last = last_call();
    if (last && kill_how == BEFORE) die();
    size_t now = last && kill_how == TORN ? len / 2 : len;
    if (is_full()) {
        now = len / 2;
        if (now == 0 || atomic_fetch_add(&refusals, 1) % 2 == 0) {
            leave();
            errno = ENOSPC;
            return -1;
        }
    }
    ssize_t done = offset < 0 ? syscall(SYS_write, fd, data, now) : syscall(SYS_pwrite64, fd, data, now, offset);
    if (done > 0) {
        off_t at = offset < 0 ? syscall(SYS_lseek, fd, 0, SEEK_CUR) - done : offset;
        note('W', path, at, data, done);
    }
    if (last) die();
    leave();
    return done;
}

static ssize_t write_any(int fd, const void *data, size_t len, off_t offset) {
    char path[PATH_MAX];
    if (watched_fd(fd, path)) return write_watched(fd, path, data, len, offset);
    if (offset >= 0) return syscall(SYS_pwrite64, fd, data, len, offset);
    if (fd != STDOUT_FILENO || trace < 0) return syscall(SYS_write, fd, data, len);
    enter();
    ssize_t done = syscall(SYS_write, fd, data, len);
    if (done > 0) note('N', "", 0, data, done);
    leave();
    return done;
}

ssize_t write(int fd, const void *data, size_t len) { return write_any(fd, data, len, -1); }
ssize_t pwrite(int fd, const void *data, size_t len, off_t offset) { return write_any(fd, data, len, offset); }
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t offset) { return write_any(fd, data, len, offset); }

/* Part after part: a gathered write may be short, and callers must cope with that anyway. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t offset) {
    ssize_t total = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len == 0) continue;
        ssize_t done = write_any(fd, parts[i].iov_base, parts[i].iov_len, offset < 0 ? -1 : offset + total);
        if (done < 0) return total ? total : -1;
        total += done;
        if ((size_t)done < parts[i].iov_len) break;
    }
    return total;
}

ssize_t writev(int fd, const struct iovec *parts, int count) { return write_parts(fd, parts, count, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return write_parts(fd, parts, count, offset); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) { return write_parts(fd, parts, count, offset); }

static int sync_any(int fd, long number) {
    char path[PATH_MAX];
    if (!watched_fd(fd, path)) return syscall(number, fd);
    enter();
    int last = last_call();
    if (last && kill_how != AFTER) die();
    int done = -1;
    if (atomic_fetch_add(&syncs, 1) + 1 == eio_at) {
        note('E', path, 0, NULL, 0);
        errno = EIO;
    } else {
        done = syscall(number, fd);
        if (done == 0) note('S', path, 0, NULL, 0);
    }
    if (last) die();
    leave();
    return done;
}

int fsync(int fd) { return sync_any(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_any(fd, SYS_fdatasync); }

static int truncate_any(int fd, off_t len) {
    char path[PATH_MAX];
    if (!watched_fd(fd, path)) return syscall(SYS_ftruncate, fd, len);
    enter();
    int last = last_call();
    if (last && kill_how != AFTER) die();
    int done = syscall(SYS_ftruncate, fd, len);
    if (done == 0) note('T', path, len, NULL, 0);
    if (last) die();
    leave();
    return done;
}

int ftruncate(int fd, off_t len) { return truncate_any(fd, len); }
int ftruncate64(int fd, off64_t len) { return truncate_any(fd, len); }

int rename(const char *from, const char *to) {
    char before[PATH_MAX], after[PATH_MAX];
    if (!absolute(from, before) || !absolute(to, after)) return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    enter();
    int last = last_call();
    if (last && kill_how != AFTER) die();
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (done == 0) note('R', before, 0, after, strlen(after));
    if (last) die();
    leave();
    return done;
}

int unlink(const char *path) {
    char full[PATH_MAX];
    if (!absolute(path, full)) return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    enter();
    int last = last_call();
    if (last && kill_how != AFTER) die();
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (done == 0) note('U', full, 0, NULL, 0);
    if (last) die();
    leave();
    return done;
}

int mkdir(const char *path, mode_t mode) {
    char full[PATH_MAX];
    int done = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (done == 0 && absolute(path, full)) {
        enter();
        note('D', full, 0, NULL, 0);
        leave();
    }
    return done;
}

/* Opening is interesting only where it creates or empties a file. */
static int open_any(int at, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    if (at != AT_FDCWD || !(flags & (O_CREAT | O_TRUNC)) || !absolute(path, full))
        return syscall(SYS_openat, at, path, flags, mode);
    enter();
    int missing = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
    int last = (missing || (flags & O_TRUNC)) && last_call();
    if (last && kill_how != AFTER) die();
    int fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && missing) note('C', full, 0, NULL, 0);
    else if (fd >= 0 && (flags & O_TRUNC)) note('T', full, 0, NULL, 0);
    if (last) die();
    leave();
    return fd;
}

#define OPEN_MODE(flags)                       \
    mode_t mode = 0;                           \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {   \
        va_list rest;                          \
        va_start(rest, flags);                 \
        mode = va_arg(rest, mode_t);           \
        va_end(rest);                          \
    }

int open(const char *path, int flags, ...) { OPEN_MODE(flags) return open_any(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { OPEN_MODE(flags) return open_any(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { OPEN_MODE(flags) return open_any(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { OPEN_MODE(flags) return open_any(at, path, flags, mode); }
