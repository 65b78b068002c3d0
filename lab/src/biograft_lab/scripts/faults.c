/* Make the n-th call that changes the disk fail, or kill the process there.

   Preloaded (LD_PRELOAD) into a process; `faults_arm` starts to count, `faults_count` tells how many
   calls there were. Reading, pipes and terminals are left alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long armed, count, failing, failed;
static int error_number;
static char name_of_failed[32];

/* error 0: kill the process */
void faults_arm(long n, int error) {
    failing = n;
    error_number = error;
    count = failed = 0;
    armed = 1;
}
long faults_count(void) { return count; }
long faults_happened(void) { return failed; }
const char *faults_name(void) { return name_of_failed; }

/* renames, new folders and mappings never end with EINTR */
static int is_interruptible(const char *name) {
    return name[0] != 'r' && name[0] != 'm';
}

static int is_due(const char *name) {
    if (!armed) return 0;
    if (__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) != failing) return 0;
    if (error_number == 0) kill(getpid(), SIGKILL);
    if (error_number == EINTR && !is_interruptible(name)) return 0;
    failed = 1;
    snprintf(name_of_failed, sizeof name_of_failed, "%s", name);
    errno = error_number;
    return 1;
}

static int is_file(int fd) {
    struct stat found;
    int before = errno;
    int known = fstat(fd, &found);
    errno = before;
    return known == 0 && S_ISREG(found.st_mode);
}

#define REAL(function) \
    static __typeof__(&function) real; \
    if (!real) real = (__typeof__(&function))dlsym(RTLD_NEXT, #function)

ssize_t write(int fd, const void *buffer, size_t n) {
    REAL(write);
    return is_file(fd) && is_due("write") ? -1 : real(fd, buffer, n);
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(writev);
    return is_file(fd) && is_due("writev") ? -1 : real(fd, parts, n);
}
ssize_t pwrite64(int fd, const void *buffer, size_t n, off64_t at) {
    REAL(pwrite64);
    return is_file(fd) && is_due("pwrite") ? -1 : real(fd, buffer, n, at);
}
size_t fwrite(const void *buffer, size_t size, size_t n, FILE *file) {
    REAL(fwrite);
    return is_file(fileno(file)) && is_due("fwrite") ? 0 : real(buffer, size, n, file);
}
int fsync(int fd) {
    REAL(fsync);
    return is_due("fsync") ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(fdatasync);
    return is_due("fdatasync") ? -1 : real(fd);
}
int rename(const char *from, const char *to) {
    REAL(rename);
    return is_due("rename") ? -1 : real(from, to);
}
int renameat2(int a, const char *from, int b, const char *to, unsigned int flags) {
    REAL(renameat2);
    return is_due("renameat2") ? -1 : real(a, from, b, to, flags);
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return is_due("mkdir") ? -1 : real(path, mode);
}
int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    return is_due("ftruncate") ? -1 : real(fd, size);
}
int posix_fallocate64(int fd, off64_t at, off64_t size) {
    REAL(posix_fallocate64);
    return is_due("posix_fallocate") ? error_number : real(fd, at, size);
}
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) {
    REAL(mmap64);
    int counts = fd >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE);
    return counts && is_due("mmap") ? MAP_FAILED : real(at, size, protection, flags, fd, offset);
}

#define OPEN(name, signature, call) \
    int name signature { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list rest; \
            va_start(rest, flags); \
            mode = va_arg(rest, mode_t); \
            va_end(rest); \
        } \
        int changes = (flags & O_ACCMODE) != O_RDONLY; \
        return changes && is_due("open") ? -1 : call; \
    }

static int real_open(const char *path, int flags, mode_t mode) {
    REAL(open64);
    return real(path, flags, mode);
}
static int real_openat(int folder, const char *path, int flags, mode_t mode) {
    REAL(openat64);
    return real(folder, path, flags, mode);
}
OPEN(open, (const char *path, int flags, ...), real_open(path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), real_open(path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), real_openat(folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), real_openat(folder, path, flags, mode))
