/* Large arrays of numpy in nameless files of a folder, mapped into memory; a thread lets go of what is resident of them when the
   process holds more than it may. What was let go of lies in the file, from where the next access takes it again.

   numpy calls `allocator` for arrays that are made while a context has it as its handler (NEP 49): those of `least` bytes or more
   get a file each, which the system removes with the mapping; smaller ones are the C library's. Linux only. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Grows whenever what a function is given or gives changes: one built from another version of this file is not used. */
#define LAYOUT 1

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* As in numpy's ndarraytypes.h, version 1. */
typedef struct {
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} Allocator;

typedef struct {
    char name[127];
    uint8_t version;
    Allocator allocator;
} Handler;

enum { SET_HANDLER = 304, WAIT_NS = 250 * 1000 };

typedef struct {
    char *at;
    size_t size;
} Mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Mapping *mappings;
static size_t count, room;
static size_t mapped, most_mapped, drops;
static char folder[4096];
static size_t least = SIZE_MAX, limit = SIZE_MAX, page = 4096;
static int failure;
static bool watching, ending;
static pthread_t watcher;

/* The lock is held. */
static bool remember(char *at, size_t size)
{
    if (count == room) {
        size_t more = room ? 2 * room : 256;
        Mapping *larger = realloc(mappings, more * sizeof(Mapping));
        if (larger == NULL)
            return false;
        mappings = larger;
        room = more;
    }
    mappings[count++] = (Mapping){at, size};
    mapped += size;
    if (mapped > most_mapped)
        most_mapped = mapped;
    return true;
}

static size_t size_of(const void *at)
{
    size_t size = 0;
    if ((uintptr_t)at & (page - 1))
        return 0;
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0 && size == 0;)
        if (mappings[i].at == at)
            size = mappings[i].size;
    pthread_mutex_unlock(&lock);
    return size;
}

/* Whether it was a mapping. It is unmapped under the lock, so that nobody lets go of an address that serves something else. */
static bool forget(void *at)
{
    bool found = false;
    if ((uintptr_t)at & (page - 1))
        return false;
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0;)
        if (mappings[i].at == at) {
            munmap(at, mappings[i].size);
            mapped -= mappings[i].size;
            mappings[i] = mappings[--count];
            found = true;
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

static int nameless_file(void)
{
    int file = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    char name[sizeof folder + 16];
    int written = snprintf(name, sizeof name, "%s/array-XXXXXX", folder);
    if (written < 0 || (size_t)written >= sizeof name)
        return -1;
    file = mkostemp(name, O_CLOEXEC);
    if (file >= 0)
        unlink(name);
    return file;
}

/* Zeros. The room in the file is claimed at once: where the disk is full this says so, and not a signal at some later access. */
static void *new_mapping(size_t wanted)
{
    if (wanted > SIZE_MAX - page)
        return NULL;
    size_t size = (wanted + page - 1) & ~(page - 1);
    void *at = MAP_FAILED;
    int file = nameless_file();
    if (file >= 0) {
        bool claimed = fallocate(file, 0, 0, (off_t)size) == 0;
        if (!claimed && (errno == EOPNOTSUPP || errno == ENOSYS))
            claimed = ftruncate(file, (off_t)size) == 0;
        if (claimed)
            at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    int reason = errno;
    if (file >= 0)
        close(file);
    if (at != MAP_FAILED) {
        /* In small pages: a random access should not bring megabytes back. */
        madvise(at, size, MADV_NOHUGEPAGE);
        pthread_mutex_lock(&lock);
        bool known = remember(at, size);
        pthread_mutex_unlock(&lock);
        if (known)
            return at;
        munmap(at, size);
        reason = ENOMEM;
    }
    failure = reason;
    return NULL;
}

static void *array_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return size >= least ? new_mapping(size) : malloc(size ? size : 1);
}

static void *array_calloc(void *ctx, size_t number, size_t width)
{
    size_t size;
    (void)ctx;
    if (__builtin_mul_overflow(number, width, &size))
        return NULL;
    return size >= least ? new_mapping(size) : calloc(number ? number : 1, width ? width : 1);
}

static void array_free(void *ctx, void *at, size_t size)
{
    (void)ctx;
    (void)size;
    if (at != NULL && !forget(at))
        free(at);
}

static void *array_realloc(void *ctx, void *old, size_t size)
{
    size_t before = old == NULL ? 0 : size_of(old);
    if (before == 0 && size < least)
        return realloc(old, size ? size : 1);
    if (old != NULL && before == 0)
        before = malloc_usable_size(old);
    void *new = array_malloc(ctx, size);
    if (new != NULL && old != NULL) {
        memcpy(new, old, before < size ? before : size);
        array_free(ctx, old, before);
    }
    return new;
}

static Handler handler = {
    "explorer_scratch", 1, {NULL, array_malloc, array_calloc, array_realloc, array_free}};

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        madvise(mappings[i].at, mappings[i].size, MADV_DONTNEED);
    drops++;
    pthread_mutex_unlock(&lock);
}

static size_t resident(int file)
{
    char text[128];
    ssize_t size = pread(file, text, sizeof text - 1, 0);
    if (size <= 0)
        return 0;
    text[size] = 0;
    char *second = strchr(text, ' ');
    return second == NULL ? 0 : (size_t)strtoull(second, NULL, 10) * page;
}

static void *watch(void *file)
{
    int statm = (int)(intptr_t)file;
    while (!__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
        long wait = WAIT_NS;
        if (resident(statm) > __atomic_load_n(&limit, __ATOMIC_RELAXED)) {
            let_go();
            /* Where other memory alone is more, letting go at once again would only take time. */
            if (resident(statm) > __atomic_load_n(&limit, __ATOMIC_RELAXED))
                wait *= 40;
        }
        nanosleep(&(struct timespec){0, wait}, NULL);
    }
    close(statm);
    return NULL;
}

PyDoc_STRVAR(begin_doc, "begin(folder, least, limit): arrays of `least` bytes go to files in the folder; more than `limit` resident bytes are let go of.");

static PyObject *begin(PyObject *self, PyObject *args)
{
    const char *path;
    Py_ssize_t smallest, most;
    (void)self;
    if (!PyArg_ParseTuple(args, "snn", &path, &smallest, &most))
        return NULL;
    if (strlen(path) >= sizeof folder || smallest < 1 || most < 1) {
        PyErr_SetString(PyExc_ValueError, "the path is too long, or a size is not positive");
        return NULL;
    }
    if (watching) {
        PyErr_SetString(PyExc_RuntimeError, "it has begun already");
        return NULL;
    }
    int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (statm < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    strcpy(folder, path);
    page = (size_t)sysconf(_SC_PAGESIZE);
    least = (size_t)smallest;
    limit = (size_t)most;
    failure = 0;
    drops = 0;
    most_mapped = mapped;
    ending = false;
    int error = pthread_create(&watcher, NULL, watch, (void *)(intptr_t)statm);
    if (error) {
        close(statm);
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    watching = true;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(end_doc, "end(): no further array goes to a file. Those that do stay there.");

static PyObject *end(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    if (watching) {
        __atomic_store_n(&ending, true, __ATOMIC_RELAXED);
        Py_BEGIN_ALLOW_THREADS
        pthread_join(watcher, NULL);
        Py_END_ALLOW_THREADS
        watching = false;
        least = SIZE_MAX;
        limit = SIZE_MAX;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(use_doc, "use(numpy's _ARRAY_API, handler or None): make the handler, or with None this module's, that of the context; gives the one before.");

static PyObject *use(PyObject *self, PyObject *args)
{
    PyObject *interface, *given;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &interface, &given))
        return NULL;
    void **api = PyCapsule_GetPointer(interface, NULL);
    if (api == NULL)
        return NULL;
    PyObject *(*set_handler)(PyObject *) = (PyObject * (*)(PyObject *)) api[SET_HANDLER];
    if (given != Py_None)
        return set_handler(given);
    PyObject *own = PyCapsule_New(&handler, "mem_handler", NULL);
    if (own == NULL)
        return NULL;
    PyObject *before = set_handler(own);
    Py_DECREF(own);
    return before;
}

PyDoc_STRVAR(state_doc, "state(): bytes mapped now and at most, how often they were let go of, and errno of the last failure since begin().");

static PyObject *state(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    pthread_mutex_lock(&lock);
    Py_ssize_t now = (Py_ssize_t)mapped, most = (Py_ssize_t)most_mapped, times = (Py_ssize_t)drops;
    pthread_mutex_unlock(&lock);
    return Py_BuildValue("nnni", now, most, times, failure);
}

PyDoc_STRVAR(drop_doc, "drop(): let go of everything now.");

static PyObject *drop(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    Py_BEGIN_ALLOW_THREADS
    let_go();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef METHODS[] = {
    {"begin", begin, METH_VARARGS, begin_doc},
    {"end", end, METH_NOARGS, end_doc},
    {"use", use, METH_VARARGS, use_doc},
    {"state", state, METH_NOARGS, state_doc},
    {"drop", drop, METH_NOARGS, drop_doc},
    {NULL, NULL, 0, NULL},
};

#else

/* Elsewhere the module is there, and is not used. */
#undef LAYOUT
#define LAYOUT 0
static PyMethodDef METHODS[] = {{NULL, NULL, 0, NULL}};

#endif

static int fill(PyObject *module)
{
    return PyModule_AddIntConstant(module, "LAYOUT", LAYOUT);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_scratch", "Large arrays in files.", 0, METHODS, SLOTS, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scratch(void)
{
    return PyModuleDef_Init(&MODULE);
}
