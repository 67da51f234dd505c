/* SPDX-License-Identifier: MIT */
/*
 * How long bytes take between a program's memory and a device, and from device to device, on each
 * platform that is named, interleaved in one process (device to device in a second one):
 *     transfers [OPTION]… PLATFORM…     (parts of platform names; the first is what others are
 *                                        compared with; default: all)
 *     --quick            nine sizes up to 256 MiB; else 4 bytes to 4 GiB by powers of four
 *     --sizes LIST       4,64K,256M
 *     --only LIST        only these transfers, such as "read,device to device"
 *     --seconds S        at most for each size of each transfer on each platform
 *     --tsv FILE         appends all medians, shortest and longest times
 *     --label TEXT       its first column
 * Numbers are medians: µs below 64 KiB, GB/s (10^9 bytes) from there on, and how many times as fast
 * as on the first platform.
 */
#include "transfers.h"

#include <malloc.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MOST 8
#define MOST_SIZES 32
#define IN_SPEED ((size_t)64 << 10)

extern char **environ;

struct options {
    const char *only;
    double seconds;
    bool between; /* only from device to device */
    size_t sizes[MOST_SIZES];
    unsigned size_count;
    struct report report;
    char **names;
    int name_count;
};

void sample_add(struct sample *sample, double seconds) {
    if (sample->count < sizeof(sample->seconds) / sizeof(sample->seconds[0]))
        sample->seconds[sample->count++] = seconds;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* "256M" */
static const char *size_text(size_t size, char text[24]) {
    const char *units = " KMG";
    while (size >= 1024 && size % 1024 == 0 && units[1]) {
        size /= 1024;
        units++;
    }
    snprintf(text, 24, "%zu%.*s", size, *units != ' ', units);
    return text;
}

void report_row(struct report *report, const char *name, size_t size, double bytes,
                const struct target *targets, struct sample *samples, unsigned count) {
    char text[24];
    double first = 0;
    printf("%-28s%6s", name, size_text(size, text));
    for (unsigned t = 0; t < count; t++) {
        struct sample *sample = &samples[t];
        if (!sample->count) {
            printf("%16s%8s", "-", "");
            continue;
        }
        qsort(sample->seconds, sample->count, sizeof(double), ascending);
        double median = sample->seconds[sample->count / 2];
        double speed = bytes / median / 1e9;
        printf(size < IN_SPEED ? "%13.1f us" : "%11.2f GB/s",
               size < IN_SPEED ? median * 1e6 : speed);
        if (t == 0)
            first = median;
        if (t && first > 0)
            printf(" %6.2fx", first / median);
        else
            printf("%8s", "");
        if (report->file)
            fprintf(report->file, "%s\t%s\t%zu\t%s\t%u\t%.3f\t%.3f\t%.3f\t%.4f\t%s\n",
                    report->label, name, size, targets[t].name, sample->count, median * 1e6,
                    sample->seconds[0] * 1e6, sample->seconds[sample->count - 1] * 1e6, speed,
                    targets[t].right ? "yes" : "NO");
    }
    printf("\n");
    fflush(stdout);
}

/* Is the name in the list? NULL: all are. */
static bool chosen(const char *only, const char *name) {
    for (const char *at = only; at;) {
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (strlen(name) == length && strncmp(name, at, length) == 0)
            return true;
        at = comma ? comma + 1 : NULL;
    }
    return !only;
}

/* Small ones repeat more often; the first time is for pages and caches. */
static void measure(const struct options *options, const struct transfer *transfer,
                    struct target *targets, unsigned count) {
    static struct sample samples[MOST];
    size_t size = targets[0].size;
    unsigned most = size < IN_SPEED ? 200 : size <= ((size_t)4 << 20) ? 40 : 15;
    memset(samples, 0, sizeof(samples));
    double end = now() + options->seconds * count;
    for (unsigned r = 0; r <= most && (r < 4 || now() < end); r++)
        for (unsigned t = 0; t < count; t++) {
            double seconds = transfer->run(&targets[t]);
            if (r)
                sample_add(&samples[t], seconds);
        }
    report_row((struct report *)&options->report, transfer->name, size,
               (double)size * transfer->bytes, targets, samples, count);
}

static void measure_all(const struct options *options, const cl_platform_id *platforms,
                        unsigned count) {
    static struct target targets[MOST];
    bool any = false;
    for (unsigned i = 0; i < transfer_count; i++)
        any = any || chosen(options->only, transfers[i].name);
    if (!any)
        return;
    for (unsigned p = 0; p < count; p++)
        if (!target_open(&targets[p], platforms[p]))
            return;
    for (unsigned s = 0; s < options->size_count; s++) {
        bool room = true;
        for (unsigned p = 0; p < count && room; p++)
            room = target_resize(&targets[p], options->sizes[s]);
        if (!room) {
            char text[24];
            printf("%s: not enough memory\n", size_text(options->sizes[s], text));
            continue;
        }
        for (unsigned i = 0; i < transfer_count; i++)
            if (options->sizes[s] >= transfers[i].least && chosen(options->only, transfers[i].name))
                measure(options, &transfers[i], targets, count);
    }
    printf("%-34s", "right");
    for (unsigned p = 0; p < count; p++) {
        printf("%16s%8s", targets[p].right ? "yes" : "NO", "");
        target_close(&targets[p]);
    }
    printf("\n");
}

/*
 * The same program again, in which Tutti sends each kernel to any device, GPUs only if there are
 * two, and none past its scheduler to where the data is: that is said before it starts. It may have
 * been kept to one device so far.
 */
static void measure_elsewhere(int argc, char **argv, const cl_platform_id *platforms,
                              unsigned count) {
    char **arguments = calloc((size_t)argc + 2, sizeof(*arguments));
    pid_t child;
    bool gpus = false;
    for (unsigned p = 0; p < count; p++) {
        cl_uint found = 0;
        gpus = gpus ||
               (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_GPU, 0, NULL, &found) == CL_SUCCESS &&
                found > 1);
    }
    setenv("TUTTI_SCHED", "random", 1);
    setenv("TUTTI_DIRECT", "never", 1);
    unsetenv("TUTTI_DEVICES");
    if (gpus)
        setenv("TUTTI_DEVICE_TYPE", "gpu", 1);
    if (!arguments)
        return;
    memcpy(arguments, argv, (size_t)argc * sizeof(*arguments));
    arguments[argc] = (char *)(size_t) "--between";
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0)
        waitpid(child, NULL, 0);
    free(arguments);
}

static void read_sizes(struct options *options, const char *list) {
    options->size_count = 0;
    while (list && *list && options->size_count < MOST_SIZES) {
        char *end;
        size_t size = strtoull(list, &end, 10);
        size <<= *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
        if (size)
            options->sizes[options->size_count++] = size;
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
}

static void read_options(struct options *options, int argc, char **argv) {
    *options = (struct options){.seconds = 1.5, .names = argv + argc, .report.label = "-"};
    for (size_t size = 4; size <= (size_t)4 << 30; size *= 4)
        options->sizes[options->size_count++] = size;
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strncmp(argv[i], "--", 2) != 0) {
            if (!options->name_count++)
                options->names = argv + i;
            continue;
        }
        if (strcmp(argv[i], "--between") == 0) {
            options->between = true;
            continue;
        }
        if (strcmp(argv[i], "--quick") == 0) {
            read_sizes(options, "4,4K,64K,256K,1M,4M,16M,64M,256M");
            options->seconds = 0.35;
            continue;
        }
        i++;
        if (strcmp(argv[i - 1], "--sizes") == 0)
            read_sizes(options, value);
        else if (strcmp(argv[i - 1], "--only") == 0)
            options->only = value;
        else if (strcmp(argv[i - 1], "--seconds") == 0)
            options->seconds = atof(value);
        else if (strcmp(argv[i - 1], "--label") == 0)
            options->report.label = value;
        else if (strcmp(argv[i - 1], "--tsv") == 0)
            file = value;
        else
            exit(fprintf(stderr, "%s: no such option\n", argv[i - 1]) > 0);
    }
    if (file && !(options->report.file = fopen(file, "a")))
        exit(fprintf(stderr, "%s: can't be written\n", file) > 0);
    if (options->report.file && fseek(options->report.file, 0, SEEK_END) == 0 &&
        ftell(options->report.file) == 0)
        fprintf(options->report.file,
                "label\ttransfer\tbytes\tplatform\ttimes\tmedian us\tleast us\t"
                "most us\tGB/s\tright\n");
}

/* The platforms whose names contain the words, in the order of the words. */
static unsigned choose(const struct options *options, cl_platform_id *chosen_ones) {
    cl_platform_id all[MOST];
    cl_uint count = 0;
    unsigned found = 0;
    check(clGetPlatformIDs(MOST, all, &count), "clGetPlatformIDs");
    count = count < MOST ? count : MOST;
    for (int n = 0; n < (options->name_count ? options->name_count : 1); n++)
        for (cl_uint p = 0; p < count && found < MOST; p++) {
            char name[128];
            check(clGetPlatformInfo(all[p], CL_PLATFORM_NAME, sizeof(name), name, NULL),
                  "clGetPlatformInfo");
            if (!options->name_count || strstr(name, options->names[n]))
                chosen_ones[found++] = all[p];
        }
    return found;
}

int main(int argc, char **argv) {
    struct options options;
    cl_platform_id platforms[MOST];
    /* As arrays are that a program makes once: later ones of a size come from a heap of glibc's. */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    read_options(&options, argc, argv);
    unsigned count = choose(&options, platforms);
    if (!count)
        return fprintf(stderr, "no such platform\n") > 0;
    if (!options.between) {
        printf("%-34s", "");
        for (unsigned p = 0; p < count; p++) {
            char name[128];
            check(clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof(name), name, NULL),
                  "clGetPlatformInfo");
            printf("%16.15s%8s", name, "");
        }
        printf("\n");
        fflush(stdout);
        measure_all(&options, platforms, count);
    } else {
        measure_between(&options.report, platforms, count, options.sizes, options.size_count,
                        options.seconds);
    }
    if (options.report.file)
        fclose(options.report.file);
    if (!options.between && chosen(options.only, "device to device"))
        measure_elsewhere(argc, argv, platforms, count);
    return 0;
}
