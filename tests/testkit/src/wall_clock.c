/* A wall clock that a test sets: loaded before a process's own libraries, it answers for the C library's. The file that
 * CENTAVO_TEST_WALL_CLOCK names holds two numbers: what is added to real time, and, where it is not zero, the time at which the clock
 * stands still; both in nanoseconds. The monotonic clock is left alone, as a machine leaves it when its wall clock is set. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct wall {
    int64_t offset;
    int64_t standing_at;
};

static const volatile struct wall *wall;

__attribute__((constructor)) static void open_wall(void) {
    const char *path = getenv("CENTAVO_TEST_WALL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *wall, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        fprintf(stderr, "the test's wall clock cannot be read\n");
        _exit(99);
    }
    wall = mapped;
    close(file);
}

static int64_t now(void) {
    int64_t standing_at = wall->standing_at;
    if (standing_at)
        return standing_at;
    struct timespec real;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
    return real.tv_sec * INT64_C(1000000000) + real.tv_nsec + wall->offset;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if ((clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) || !wall)
        return (int)syscall(SYS_clock_gettime, clock, time);
    int64_t at = now();
    time->tv_sec = at / 1000000000;
    time->tv_nsec = at % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    int64_t at = now();
    time->tv_sec = at / 1000000000;
    time->tv_usec = at % 1000000000 / 1000;
    return 0;
}

time_t time(time_t *place) {
    time_t at = now() / 1000000000;
    if (place)
        *place = at;
    return at;
}
