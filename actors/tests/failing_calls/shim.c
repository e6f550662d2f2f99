/*
 * Lets one call into the system fail.
 *
 * Preloaded into a process (LD_PRELOAD), it counts the calls that change what is below one folder, or those that read it. The
 * n-th of them does nothing and answers with an error; a line on the standard output says which one it was, so that its reader
 * knows what the process had told before and what after. When the process ends, another line says how many calls there were.
 *
 * A call that fails in the background is known to the other threads a little later, when what it belonged to has ended. So that
 * this depends little on the machine, whoever tells something on the standard output waits until the thread in which it failed
 * has been without a call for a moment.
 *
 * It calls what it stands before, so that it can be preloaded together with others.
 *
 * What it does not see: raw system calls (so not those of the ballast's fallocate), and buffered streams of the C library.
 *
 * CENTAVO_FAIL_FOLDER  the folder, as an absolute path without links
 * CENTAVO_FAIL_CALLS   changes or reads
 * CENTAVO_FAIL_AMONG   what the paths in the folder begin with of which calls are counted; nothing for all
 * CENTAVO_FAIL_AT      the number of the call that fails; 0 for none
 * CENTAVO_FAIL_FOR     once, or ever for all calls from then on
 * CENTAVO_FAIL_ERROR   the number of the error
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CHANGES = 1, READS = 2, PAUSE_MS = 400, PAUSES_MAX = 20 };

static char root[PATH_MAX], among[PATH_MAX];
static size_t root_length;
static int kind_counted;
static unsigned long long fail_at, seen;
static int fails_ever, error_number;
/* If it is one in the background. */
static pid_t failed_thread;
static struct timespec pause_begun;
static int pauses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(const char *line, int length) { syscall(SYS_write, 1, line, (size_t)length); }

__attribute__((constructor)) static void start(void)
{
    const char *folder = getenv("CENTAVO_FAIL_FOLDER"), *calls = getenv("CENTAVO_FAIL_CALLS"), *at = getenv("CENTAVO_FAIL_AT");
    const char *duration = getenv("CENTAVO_FAIL_FOR"), *number = getenv("CENTAVO_FAIL_ERROR");
    const char *prefix = getenv("CENTAVO_FAIL_AMONG");
    if (!folder || !prefix || strlen(prefix) >= PATH_MAX || !calls || !at || !duration || !number || strlen(folder) >= PATH_MAX)
        abort();
    kind_counted = strcmp(calls, "reads") == 0 ? READS : CHANGES;
    fails_ever = strcmp(duration, "ever") == 0;
    fail_at = strtoull(at, NULL, 10);
    error_number = atoi(number);
    strcpy(root, folder);
    strcpy(among, prefix);
    root_length = strlen(folder);
}

__attribute__((destructor)) static void end(void)
{
    char line[64];
    tell(line, snprintf(line, sizeof line, "\ncalls-seen %llu\n", seen));
}

static int is_pausing(void)
{
    struct timespec now;
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_MONOTONIC, &now);
    long elapsed_ms = (now.tv_sec - pause_begun.tv_sec) * 1000 + (now.tv_nsec - pause_begun.tv_nsec) / 1000000;
    int pauses_now = failed_thread && elapsed_ms < PAUSE_MS;
    pthread_mutex_unlock(&lock);
    return pauses_now;
}

static void wait_to_tell(void)
{
    while (is_pausing())
        usleep(1000);
}

/* Whether the folder of the journal in which something lies was closed: whether its closing line is there. */
static int is_closed(const char *path)
{
    char line[PATH_MAX + 16];
    static const char journal[] = "/journal/";
    if (strncmp(path + root_length, journal, sizeof journal - 1) != 0)
        return 0;
    int to_number = root_length + sizeof journal - 1;
    int length = to_number + strcspn(path + to_number, "/");
    snprintf(line, sizeof line, "%.*s.closed", length, path);
    return access(line, F_OK) == 0;
}

static int fails_below_root(int kind, const char *call, const char *path)
{
    if (kind != kind_counted || !root_length || strncmp(path, root, root_length) != 0 || path[root_length] != '/')
        return 0;
    if (strncmp(path + root_length + 1, among, strlen(among)) != 0)
        return 0;
    int saved = errno;
    pthread_mutex_lock(&lock);
    seen++;
    int is_first = fail_at && seen == fail_at;
    int fails = is_first || (fails_ever && fail_at && seen > fail_at);
    pid_t thread = syscall(SYS_gettid);
    if (is_first) {
        char line[PATH_MAX + 128], name[17] = "";
        prctl(PR_GET_NAME, name);
        if (strncmp(name, "journal ", 8) == 0 || strstr(path, ".unfinished/"))
            failed_thread = thread;
        tell(line, snprintf(line, sizeof line, "\nfailed-call %s %s|%s|%s\n", call, path + root_length + 1, name,
                            is_closed(path) ? "closed" : "open"));
    }
    if (failed_thread == thread && pauses++ < PAUSES_MAX)
        clock_gettime(CLOCK_MONOTONIC, &pause_begun);
    pthread_mutex_unlock(&lock);
    errno = fails ? error_number : saved;
    return fails;
}

static int fails_by_file(int kind, const char *call, int file)
{
    char link[64], path[PATH_MAX];
    if (kind != kind_counted)
        return 0;
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = saved;
    if (length <= 0)
        return 0;
    path[length] = 0;
    return fails_below_root(kind, call, path);
}

static int fails_by_name(const char *call, int folder, const char *name)
{
    char path[2 * PATH_MAX], base[PATH_MAX], link[64];
    if (kind_counted != CHANGES || *name == '/')
        return fails_below_root(CHANGES, call, name);
    int saved = errno;
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, base, sizeof base - 1);
    errno = saved;
    if (length <= 0)
        return 0;
    base[length] = 0;
    snprintf(path, sizeof path, "%s/%s", base, name);
    return fails_below_root(CHANGES, call, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define BY_FILE(kind, type, name, parameters, file, arguments)                                                                \
    type name parameters { return fails_by_file(kind, #name, file) ? -1 : NEXT(name) arguments; }

#define BY_NAME(name, parameters, folder, path, arguments)                                                                    \
    int name parameters { return fails_by_name(#name, folder, path) ? -1 : NEXT(name) arguments; }

/* -- Contents and sizes -- */

ssize_t write(int file, const void *bytes, size_t length)
{
    if (file == 1)
        wait_to_tell();
    return fails_by_file(CHANGES, "write", file) ? -1 : NEXT(write)(file, bytes, length);
}

BY_FILE(CHANGES, ssize_t, writev, (int file, const struct iovec *parts, int count), file, (file, parts, count))
BY_FILE(CHANGES, ssize_t, pwrite, (int file, const void *bytes, size_t length, off_t offset), file, (file, bytes, length, offset))
BY_FILE(CHANGES, ssize_t, pwrite64, (int file, const void *bytes, size_t length, off64_t offset), file, (file, bytes, length, offset))
BY_FILE(CHANGES, ssize_t, pwritev, (int file, const struct iovec *parts, int count, off_t offset), file, (file, parts, count, offset))
BY_FILE(CHANGES, ssize_t, pwritev64, (int file, const struct iovec *parts, int count, off64_t offset), file, (file, parts, count, offset))
BY_FILE(CHANGES, int, ftruncate, (int file, off_t size), file, (file, size))
BY_FILE(CHANGES, int, ftruncate64, (int file, off64_t size), file, (file, size))
BY_FILE(CHANGES, int, fallocate, (int file, int mode, off_t offset, off_t length), file, (file, mode, offset, length))
BY_FILE(CHANGES, int, fallocate64, (int file, int mode, off64_t offset, off64_t length), file, (file, mode, offset, length))
BY_FILE(READS, ssize_t, read, (int file, void *bytes, size_t length), file, (file, bytes, length))
BY_FILE(READS, ssize_t, readv, (int file, const struct iovec *parts, int count), file, (file, parts, count))
BY_FILE(READS, ssize_t, pread, (int file, void *bytes, size_t length, off_t offset), file, (file, bytes, length, offset))
BY_FILE(READS, ssize_t, pread64, (int file, void *bytes, size_t length, off64_t offset), file, (file, bytes, length, offset))

/* -- Syncs; a `sync_file_range` becomes one of these before it comes here -- */

BY_FILE(CHANGES, int, fsync, (int file), file, (file))
BY_FILE(CHANGES, int, fdatasync, (int file), file, (file))

/* -- Names; a `rename` becomes a `renameat` before it comes here -- */

BY_NAME(renameat, (int from_folder, const char *from, int folder, const char *to), folder, to, (from_folder, from, folder, to))
BY_NAME(mkdir, (const char *name, mode_t mode), AT_FDCWD, name, (name, mode))
BY_NAME(mkdirat, (int folder, const char *name, mode_t mode), folder, name, (folder, name, mode))
BY_NAME(unlink, (const char *name), AT_FDCWD, name, (name))
BY_NAME(unlinkat, (int folder, const char *name, int flags), folder, name, (folder, name, flags))
BY_NAME(rmdir, (const char *name), AT_FDCWD, name, (name))

#define OPEN(function, parameters, folder, before_name)                                                                       \
    int function parameters                                                                                                   \
    {                                                                                                                         \
        va_list arguments;                                                                                                    \
        va_start(arguments, flags);                                                                                           \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                                          \
        va_end(arguments);                                                                                                    \
        return flags & O_CREAT && fails_by_name(#function, folder, name) ? -1 : NEXT(function)(before_name name, flags, mode); \
    }

#define COMMA ,
OPEN(open, (const char *name, int flags, ...), AT_FDCWD, )
OPEN(open64, (const char *name, int flags, ...), AT_FDCWD, )
OPEN(openat, (int folder, const char *name, int flags, ...), folder, folder COMMA)
OPEN(openat64, (int folder, const char *name, int flags, ...), folder, folder COMMA)
