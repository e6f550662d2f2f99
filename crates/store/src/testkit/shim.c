/*
 * Remembers what a program has written and not yet made durable.
 *
 * Preloaded into a process (LD_PRELOAD), it stands between the program and the C library. Before a file below one folder
 * changes, the old content of what is about to change goes to an undo log; after a sync that succeeded, the log says how
 * far the file is durable. When the process has been killed, `cut.rs` takes back whatever a power cut might have taken.
 *
 * Three promises make the log worth something. It is written with write(2), so it outlives the process. One lock is held
 * from the record of a change to its end, so that a change which stands before a sync's beginning had really been made by
 * then. And a sync vouches only for what stands in the log before it began.
 *
 * What it does not see: raw system calls, buffered streams of the C library, other processes that write the same file at
 * the same time. What it can't model it refuses, loudly: shared writable mappings, links, a folder that replaces another. Where
 * the kernel may copy into a file by itself, it says that it can't, so that the program writes.
 *
 * `sync_file_range` is absent here on purpose: it makes neither the size nor the disk's cache durable, so it counts for
 * nothing.
 *
 * CENTAVO_CUT_FOLDER  the folder, as an absolute path without links
 * CENTAVO_CUT_LOG     the undo log
 * CENTAVO_CUT_KEPT    a folder of the same file system, which keeps every file under its inode's number when its name goes
 * CENTAVO_CUT_STUCK   a file: while it is there, no sync ends
 * CENTAVO_CUT_KILL    after so many records the process is killed; 0 leaves that to others
 * CENTAVO_CUT_DISK    honest, lying (no sync counts), or range (fdatasync counts for as much as sync_file_range)
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SECTOR = 512, PATH_SIZE = 2 * PATH_MAX + 2 };

/* The kinds of records; `cut.rs` knows the same numbers. */
enum { WRITE = 1, RESIZE = 2, SYNC = 3, CREATE = 4, UNLINK = 5, RENAME = 6, MAKE_FOLDER = 7, REMOVE_FOLDER = 8, SYNC_FOLDER = 9 };

struct record {
    uint64_t magic;
    uint64_t kind;
    uint64_t inode;
    uint64_t offset;      /* of a write; of a sync: the log's length when it began */
    uint64_t length;      /* of a write; the new size of a resize */
    uint64_t size_before; /* of the file */
    uint64_t old_offset;  /* where the old content in the payload began */
    uint64_t payload_length;
};

static const uint64_t MAGIC = 0x6f676e7572657770;

static char root[PATH_MAX];
static size_t root_length;
static char kept[PATH_MAX];
static const char *stuck;
static int undo_log = -1;
static unsigned long long records_to_live;
static int fdatasync_counts = 1;
static int fsync_counts = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void refuse(const char *what)
{
    static const char prefix[] = "power cut shim: ";
    syscall(SYS_write, 2, prefix, sizeof prefix - 1);
    syscall(SYS_write, 2, what, strlen(what));
    syscall(SYS_write, 2, "\n", 1);
    abort();
}

__attribute__((constructor)) static void start(void)
{
    const char *folder = getenv("CENTAVO_CUT_FOLDER");
    const char *log = getenv("CENTAVO_CUT_LOG");
    const char *inodes = getenv("CENTAVO_CUT_KEPT");
    const char *disk = getenv("CENTAVO_CUT_DISK");
    stuck = getenv("CENTAVO_CUT_STUCK");
    const char *life = getenv("CENTAVO_CUT_KILL");
    if (!folder || !log || !inodes || !disk || !life || strlen(folder) >= PATH_MAX || strlen(inodes) >= PATH_MAX)
        refuse("its environment is not set");
    int opened = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    undo_log = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, 300);
    if (undo_log < 0)
        refuse("the undo log can't be opened");
    syscall(SYS_close, opened);
    fdatasync_counts = strcmp(disk, "honest") == 0;
    fsync_counts = fdatasync_counts || strcmp(disk, "range") == 0;
    if (!fsync_counts && strcmp(disk, "lying") != 0)
        refuse("no such disk");
    records_to_live = strtoull(life, NULL, 10);
    strcpy(kept, inodes);
    strcpy(root, folder);
    root_length = strlen(folder);
}

static void take_lock(void) { pthread_mutex_lock(&lock); }

static void release_lock(void)
{
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* -- Where something is -- */

static int is_below_root(const char *path)
{
    return root_length && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static const char *inside(const char *path) { return path[root_length] ? path + root_length + 1 : ""; }

static int path_of(int file, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return 1;
}

/* Whether an open file lies below the folder. */
static int is_tracked(int file, char *path, struct stat *status)
{
    int saved = errno;
    int tracked = root_length && file >= 0 && path_of(file, path) && is_below_root(path) && fstat(file, status) == 0;
    errno = saved;
    return tracked;
}

/* Whether a name lies below the folder; the name itself is not followed if it is a link. */
static int locate(int folder, const char *name, char *found)
{
    int saved = errno;
    char joined[PATH_SIZE], parent[PATH_MAX];
    int located = 0;
    if (!root_length || !name || !*name || strlen(name) >= PATH_MAX)
        return 0;
    if (*name == '/') {
        strcpy(joined, name);
    } else {
        char base[PATH_MAX];
        if (folder == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(folder, base))
            goto end;
        snprintf(joined, sizeof joined, "%s/%s", base, name);
    }
    for (size_t length = strlen(joined); length > 1 && joined[length - 1] == '/'; length--)
        joined[length - 1] = 0;
    char *last = strrchr(joined, '/');
    *last = 0;
    if (!realpath(*joined ? joined : "/", parent) || strlen(parent) + strlen(last + 1) + 2 > PATH_MAX)
        goto end;
    sprintf(found, "%s/%s", parent, last + 1);
    located = is_below_root(found) && found[root_length] == '/';
end:
    errno = saved;
    return located;
}

/* -- The log; the lock is held -- */

static uint64_t log_length(void)
{
    off_t length = syscall(SYS_lseek, undo_log, 0, SEEK_END);
    if (length < 0)
        refuse("the undo log has no length");
    return length;
}

static void append(struct record record, const void *payload, size_t length)
{
    record.magic = MAGIC;
    record.payload_length = length;
    struct iovec parts[] = {{&record, sizeof record}, {(void *)payload, length}};
    ssize_t written = syscall(SYS_writev, undo_log, parts, 2);
    if (written != (ssize_t)(sizeof record + length))
        refuse("the undo log can't be written");
    if (records_to_live > 0 && --records_to_live == 0)
        kill(getpid(), SIGKILL);
}

static void append_name(uint64_t kind, uint64_t inode, const char *path)
{
    struct record record = {.kind = kind, .inode = inode};
    append(record, inside(path), strlen(inside(path)));
}

/* Reads the old content of a range, up to the end of the file; answers how much there is. */
static size_t read_old(const char *path, uint64_t from, uint64_t to, char **old)
{
    *old = NULL;
    if (to <= from)
        return 0;
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    *old = malloc(to - from);
    if (file < 0 || !*old)
        refuse("the old content of a file can't be read");
    size_t length = 0;
    while (length < to - from) {
        ssize_t count = syscall(SYS_pread64, file, *old + length, to - from - length, from + length);
        if (count < 0)
            refuse("the old content of a file can't be read");
        if (count == 0)
            break;
        length += count;
    }
    syscall(SYS_close, file);
    return length;
}

static void before_change(struct record record, const char *path, uint64_t from, uint64_t to)
{
    int saved = errno;
    char *old;
    if (to > record.size_before)
        to = record.size_before;
    record.old_offset = from;
    size_t length = read_old(path, from, to, &old);
    append(record, old, length);
    free(old);
    errno = saved;
}

static void before_write(int file, const struct stat *status, uint64_t offset, uint64_t length)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct record record = {.kind = WRITE, .inode = status->st_ino, .offset = offset, .length = length, .size_before = status->st_size};
    uint64_t from = offset / SECTOR * SECTOR, to = (offset + length + SECTOR - 1) / SECTOR * SECTOR;
    before_change(record, path, from, to);
}

static void before_resize(const char *path, const struct stat *status, uint64_t size)
{
    struct record record = {.kind = RESIZE, .inode = status->st_ino, .length = size, .size_before = status->st_size};
    before_change(record, path, size / SECTOR * SECTOR, status->st_size);
}

/* Gives a file a second name, so that its content and its number outlive the first. */
static void keep(const char *path, ino_t inode)
{
    char name[PATH_SIZE];
    snprintf(name, sizeof name, "%s/%llu", kept, (unsigned long long)inode);
    if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, name, 0) < 0 && errno != EEXIST)
        refuse("a file can't be kept: is the log's folder on another file system?");
}

/* -- Writing -- */

/* A negative offset stands for the file's own position. */
static ssize_t write_parts(int file, const struct iovec *parts, int count, off_t offset)
{
    char path[PATH_MAX];
    struct stat status;
    int at_position = offset < 0;
    if (!is_tracked(file, path, &status) || !S_ISREG(status.st_mode)) {
        return at_position ? syscall(SYS_writev, file, parts, count) : syscall(SYS_pwritev, file, parts, count, offset, 0L);
    }
    take_lock();
    uint64_t length = 0;
    for (int part = 0; part < count; part++)
        length += parts[part].iov_len;
    if (fstat(file, &status) < 0)
        refuse("an open file has no status");
    /* Linux appends whatever the offset says. */
    if (fcntl(file, F_GETFL) & O_APPEND)
        offset = status.st_size;
    else if (at_position)
        offset = syscall(SYS_lseek, file, 0, SEEK_CUR);
    if (length > 0)
        before_write(file, &status, offset, length);
    ssize_t written =
        at_position ? syscall(SYS_writev, file, parts, count) : syscall(SYS_pwritev, file, parts, count, offset, 0L);
    release_lock();
    return written;
}

ssize_t write(int file, const void *bytes, size_t length)
{
    char path[PATH_MAX];
    struct stat status;
    if (!is_tracked(file, path, &status))
        return syscall(SYS_write, file, bytes, length);
    struct iovec part = {(void *)bytes, length};
    return write_parts(file, &part, 1, -1);
}

ssize_t writev(int file, const struct iovec *parts, int count) { return write_parts(file, parts, count, -1); }

static ssize_t write_at(int file, const struct iovec *parts, int count, off_t offset)
{
    if (offset < 0) {
        errno = EINVAL;
        return -1;
    }
    return write_parts(file, parts, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset)
{
    struct iovec part = {(void *)bytes, length};
    return write_at(file, &part, 1, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) { return pwrite(file, bytes, length, offset); }

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) { return write_at(file, parts, count, offset); }

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) { return write_at(file, parts, count, offset); }

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags)
{
    char path[PATH_MAX];
    struct stat status;
    if (is_tracked(file, path, &status) && flags) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (flags)
        return syscall(SYS_pwritev2, file, parts, count, offset, 0L, flags);
    return offset == -1 ? write_parts(file, parts, count, -1) : write_at(file, parts, count, offset);
}

ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off64_t offset, int flags)
{
    return pwritev2(file, parts, count, offset, flags);
}

/* -- What the kernel would write by itself -- */

static int takes_copies(int file)
{
    char path[PATH_MAX];
    struct stat status;
    if (!is_tracked(file, path, &status))
        return 1;
    errno = ENOSYS;
    return 0;
}

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags)
{
    return takes_copies(to) ? syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags) : -1;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length)
{
    return takes_copies(to) ? syscall(SYS_sendfile, to, from, offset, length) : -1;
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t length) { return sendfile(to, from, offset, length); }

ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t length, unsigned flags)
{
    return takes_copies(to) ? syscall(SYS_splice, from, from_offset, to, to_offset, length, flags) : -1;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    char path[PATH_MAX];
    struct stat status;
    int is_shared = (flags & MAP_TYPE) != MAP_PRIVATE && !(flags & MAP_ANONYMOUS);
    if (is_shared && (protection & PROT_WRITE) && is_tracked(file, path, &status))
        refuse("a file is mapped to be written, which is not modelled");
    return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset)
{
    return mmap(address, length, protection, flags, file, offset);
}

/* -- Sizes -- */

int ftruncate(int file, off_t size)
{
    char path[PATH_MAX], own[64];
    struct stat status;
    if (!is_tracked(file, path, &status) || size < 0)
        return syscall(SYS_ftruncate, file, size);
    take_lock();
    snprintf(own, sizeof own, "/proc/self/fd/%d", file);
    if (fstat(file, &status) < 0)
        refuse("an open file has no status");
    before_resize(own, &status, size);
    int result = syscall(SYS_ftruncate, file, size);
    release_lock();
    return result;
}

int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int truncate(const char *name, off_t size)
{
    int file = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CLOEXEC, 0);
    if (file < 0)
        return -1;
    int result = ftruncate(file, size);
    int saved = errno;
    syscall(SYS_close, file);
    errno = saved;
    return result;
}

int truncate64(const char *name, off64_t size) { return truncate(name, size); }

int fallocate(int file, int mode, off_t offset, off_t length)
{
    char path[PATH_MAX];
    struct stat status;
    if (!is_tracked(file, path, &status))
        return syscall(SYS_fallocate, file, mode, offset, length);
    if (mode & ~FALLOC_FL_KEEP_SIZE)
        refuse("a file is changed by fallocate, which is not modelled");
    take_lock();
    if (fstat(file, &status) < 0)
        refuse("an open file has no status");
    if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + length > status.st_size) {
        struct record record = {.kind = RESIZE, .inode = status.st_ino, .length = offset + length, .size_before = status.st_size};
        append(record, NULL, 0);
    }
    int result = syscall(SYS_fallocate, file, mode, offset, length);
    release_lock();
    return result;
}

int fallocate64(int file, int mode, off64_t offset, off64_t length) { return fallocate(file, mode, offset, length); }

int posix_fallocate(int file, off_t offset, off_t length) { return fallocate(file, 0, offset, length) < 0 ? errno : 0; }

int posix_fallocate64(int file, off64_t offset, off64_t length) { return posix_fallocate(file, offset, length); }

/* -- Names -- */

static int open_named(int folder, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    struct stat status;
    int is_nameless = (flags & O_TMPFILE) == O_TMPFILE;
    if (!(flags & (O_CREAT | O_TRUNC)) || !locate(folder, name, path)) {
        if (is_nameless && locate(folder, name, path))
            refuse("a file without a name is made, which is not modelled");
        return syscall(SYS_openat, folder, name, flags, mode);
    }
    take_lock();
    int existed = fstatat(AT_FDCWD, path, &status, 0) == 0;
    if (existed && (flags & O_TRUNC) && S_ISREG(status.st_mode) && status.st_size > 0)
        before_resize(path, &status, 0);
    int file = syscall(SYS_openat, folder, name, flags, mode);
    if (file >= 0 && !existed) {
        if (fstat(file, &status) < 0)
            refuse("an open file has no status");
        keep(path, status.st_ino);
        append_name(CREATE, status.st_ino, path);
    }
    release_lock();
    return file;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int open(const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_named(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_named(AT_FDCWD, name, flags, mode);
}

int openat(int folder, const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_named(folder, name, flags, mode);
}

int openat64(int folder, const char *name, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_named(folder, name, flags, mode);
}

int creat(const char *name, mode_t mode) { return open_named(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int creat64(const char *name, mode_t mode) { return creat(name, mode); }

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    char old[PATH_MAX], new[PATH_MAX];
    struct stat status, replaced;
    int from_below = locate(from_folder, from, old), to_below = locate(to_folder, to, new);
    if (!from_below && !to_below)
        return syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    if (!from_below || !to_below || (flags & ~RENAME_NOREPLACE))
        refuse("a name crosses the folder's border or is exchanged, which is not modelled");
    take_lock();
    int exists = fstatat(AT_FDCWD, old, &status, AT_SYMLINK_NOFOLLOW) == 0;
    int replaces = fstatat(AT_FDCWD, new, &replaced, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && replaces && S_ISDIR(status.st_mode))
        refuse("a folder replaces another, which is not modelled");
    if (exists && S_ISREG(status.st_mode))
        keep(old, status.st_ino);
    if (replaces && S_ISREG(replaced.st_mode))
        keep(new, replaced.st_ino);
    int result = syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    if (result == 0) {
        char names[PATH_SIZE];
        int length = snprintf(names, sizeof names, "%s%c%s", inside(old), 0, inside(new));
        struct record record = {.kind = RENAME, .inode = status.st_ino};
        append(record, names, length);
    }
    release_lock();
    return result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char *name, int flags)
{
    char path[PATH_MAX];
    struct stat status;
    if (!locate(folder, name, path))
        return syscall(SYS_unlinkat, folder, name, flags);
    take_lock();
    int is_file = fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode);
    if (is_file && !(flags & AT_REMOVEDIR))
        keep(path, status.st_ino);
    int result = syscall(SYS_unlinkat, folder, name, flags);
    if (result == 0)
        append_name(flags & AT_REMOVEDIR ? REMOVE_FOLDER : UNLINK, is_file ? status.st_ino : 0, path);
    release_lock();
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int folder, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    if (!locate(folder, name, path))
        return syscall(SYS_mkdirat, folder, name, mode);
    take_lock();
    int result = syscall(SYS_mkdirat, folder, name, mode);
    if (result == 0)
        append_name(MAKE_FOLDER, 0, path);
    release_lock();
    return result;
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    char path[PATH_MAX];
    if (locate(to_folder, to, path) || locate(from_folder, from, path))
        refuse("a link is made, which is not modelled");
    return syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target, int folder, const char *name)
{
    char path[PATH_MAX];
    if (locate(folder, name, path))
        refuse("a link is made, which is not modelled");
    return syscall(SYS_symlinkat, target, folder, name);
}

int symlink(const char *target, const char *name) { return symlinkat(target, AT_FDCWD, name); }

/* -- Syncs -- */

static int sync_file(int file, long call, int counts)
{
    char path[PATH_MAX];
    struct stat status;
    if (!is_tracked(file, path, &status))
        return syscall(call, file);
    while (stuck && access(stuck, F_OK) == 0)
        usleep(10000);
    take_lock();
    uint64_t began = log_length();
    release_lock();
    int result = syscall(call, file);
    if (result == 0 && counts) {
        take_lock();
        int is_folder = S_ISDIR(status.st_mode);
        struct record record = {.kind = is_folder ? SYNC_FOLDER : SYNC, .inode = status.st_ino, .offset = began};
        append(record, inside(path), is_folder ? strlen(inside(path)) : 0);
        release_lock();
    }
    return result;
}

int fsync(int file) { return sync_file(file, SYS_fsync, fsync_counts); }

int fdatasync(int file) { return sync_file(file, SYS_fdatasync, fdatasync_counts); }
