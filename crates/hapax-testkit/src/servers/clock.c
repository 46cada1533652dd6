/*
 * A clock that a test sets, preloaded between a server and libc with LD_PRELOAD.
 *
 * HAPAX_TEST_CLOCK names a file of eight bytes: microseconds since the Unix epoch, in the machine's byte order. They are
 * the time of day of the server. Its monotonic clock is not changed, so that its timers run on.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *clock_us;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("HAPAX_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *clock_us, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) clock_us = page;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    if (clock_us) {
        int64_t us = *clock_us;
        now->tv_sec = us / 1000000;
        now->tv_usec = us % 1000000;
        return 0;
    }
    /* Before the constructor ran: an allocator asks this early. */
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec;
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
