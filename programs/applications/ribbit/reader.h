/* reader.h: reads a scene from a file. Each line has one statement; the README in the folder `scenes` lists them. */
#ifndef RIBBIT_READER_H
#define RIBBIT_READER_H

#include "scene.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum { MAX_LINE = 4096 /* bytes */, MAX_WORDS = 256, MAX_DEPTH = 16 /* of nested `begin` */, MAX_NAME = 32 /* bytes */ };

#define READER_MAX_NUMBER 1e6 /* largest number in a scene */
#define READER_MAX_COORDINATE 1e9 /* largest coordinate or size after a transformation */
#define READER_MIN_SCALE 1e-6 /* smallest scale of a pattern or a relief */

struct reader {
    const char *file;
    int line;
    struct scene *scene;
    char names[MAX_MATERIALS][MAX_NAME];
    int material; /* of the following primitives, or -1 before the first `material` */
    double matrix[MAX_DEPTH][12]; /* nested transformations; matrix[depth] applies to the following primitives */
    int depth;
    struct vec at;
    double angle; /* angle of view, in degrees; 0 before the `camera` statement */
    struct piece *pieces;
    int room;
};

/* Prints what is wrong with the line. Returns 0. */
__attribute__((format(printf, 2, 3))) static int reader_refuse(const struct reader *r, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "ribbit: %s, line %d: ", r->file, r->line);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return 0;
}

static struct vec reader_vec(const double *n)
{
    return vec(n[0], n[1], n[2]);
}

/* ---- the surroundings --------------------------------------------------------------------------- */

static int read_camera(struct reader *r, const double *n, int count)
{
    (void)count;
    r->scene->numbers.eye = reader_vec(n);
    r->at = reader_vec(n + 3);
    r->angle = n[6];
    struct vec ahead = vec_sub(r->at, r->scene->numbers.eye);
    if (ahead.x == 0 && ahead.z == 0)
        return reader_refuse(r, "the camera looks straight up or down, or at itself: move it a little");
    if (r->angle < 1 || r->angle > 150)
        return reader_refuse(r, "the camera's angle must be 1 to 150 degrees, not %g", r->angle);
    return 1;
}

static int read_samples(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[0] != floor(n[0]) || n[0] < 1 || n[0] > 8)
        return reader_refuse(r, "samples across a pixel must be 1 to 8, not %g", n[0]);
    r->scene->ints.samples = (int)n[0];
    return 1;
}

static int read_rate(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[0] < 0.1 || n[0] > 100)
        return reader_refuse(r, "the shading rate must be 0.1 to 100 pixels, not %g", n[0]);
    r->scene->numbers.rate = n[0];
    return 1;
}

static int read_sky(struct reader *r, const double *n, int count)
{
    (void)count;
    r->scene->numbers.horizon = reader_vec(n);
    r->scene->numbers.zenith = reader_vec(n + 3);
    r->scene->numbers.ground = reader_vec(n + 6);
    return 1;
}

static int read_fog(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[3] <= 0)
        return reader_refuse(r, "the distance of the fog must be more than 0, not %g", n[3]);
    r->scene->numbers.fog = reader_vec(n);
    r->scene->numbers.fog_distance = n[3];
    return 1;
}

static int read_clouds(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[0] < 0 || n[0] > 1)
        return reader_refuse(r, "clouds must cover 0 to 1 of the sky, not %g", n[0]);
    r->scene->numbers.clouds = n[0];
    return 1;
}

static int reader_light(struct reader *r, const double *n, int lamp)
{
    if (r->scene->ints.lights == MAX_LIGHTS)
        return reader_refuse(r, "there are already %d lights, which is the maximum", MAX_LIGHTS);
    struct vec place = reader_vec(n);
    if (!lamp && vec_length(place) == 0)
        return reader_refuse(r, "a sun needs a direction other than 0 0 0");
    if (n[6] < 0)
        return reader_refuse(r, "the softness of shadows must be 0 or more, not %g", n[6]);
    struct light light = {lamp ? place : vec_unit(place), reader_vec(n + 3), lamp, fmax(n[6], 1e-4)};
    r->scene->numbers.lights[r->scene->ints.lights++] = light;
    return 1;
}

static int read_sun(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_light(r, n, 0);
}

static int read_lamp(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_light(r, n, 1);
}

/* ---- transformations ------------------------------------------------------------------------------ */

static int read_begin(struct reader *r, const double *n, int count)
{
    (void)n;
    (void)count;
    if (r->depth + 1 == MAX_DEPTH)
        return reader_refuse(r, "`begin` is already nested %d deep, which is the maximum", r->depth);
    memcpy(r->matrix[r->depth + 1], r->matrix[r->depth], sizeof r->matrix[0]);
    r->depth++;
    return 1;
}

static int read_end(struct reader *r, const double *n, int count)
{
    (void)n;
    (void)count;
    if (r->depth == 0)
        return reader_refuse(r, "`end` without a `begin` before it");
    r->depth--;
    return 1;
}

static int read_move(struct reader *r, const double *n, int count)
{
    (void)count;
    matrix_then(r->matrix[r->depth], (double[12]){1, 0, 0, 0, 1, 0, 0, 0, 1, n[0], n[1], n[2]});
    return 1;
}

static int read_scale(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[0] == 0 || n[1] == 0 || n[2] == 0)
        return reader_refuse(r, "a scale must not be 0");
    matrix_then(r->matrix[r->depth], (double[12]){n[0], 0, 0, 0, n[1], 0, 0, 0, n[2], 0, 0, 0});
    return 1;
}

/* Reads a rotation: degrees and an axis. */
static int read_turn(struct reader *r, const double *n, int count)
{
    (void)count;
    struct vec a = vec_unit(reader_vec(n + 1));
    if (vec_length(a) == 0)
        return reader_refuse(r, "a turn needs an axis other than 0 0 0");
    double c = cos(n[0] * PI / 180), s = sin(n[0] * PI / 180), d = 1 - c;
    matrix_then(r->matrix[r->depth], (double[12]){c + a.x * a.x * d, a.y * a.x * d + a.z * s, a.z * a.x * d - a.y * s,
                                                  a.x * a.y * d - a.z * s, c + a.y * a.y * d, a.z * a.y * d + a.x * s,
                                                  a.x * a.z * d + a.y * s, a.y * a.z * d - a.x * s, c + a.z * a.z * d, 0, 0, 0});
    return 1;
}

/* ---- primitives ------------------------------------------------------------------------------------ */

/* Adds a primitive. Its shape is described by `count` numbers that follow its transformation, or replace it. */
static int reader_add(struct reader *r, enum shape shape, const double *numbers, int count)
{
    if (r->material < 0)
        return reader_refuse(r, "a primitive needs a material: write `use NAME` before it");
    if (r->scene->ints.primitives == r->room)
        r->pieces = grown_memory(r->pieces, &r->room, sizeof *r->pieces);
    struct piece *piece = &r->pieces[r->scene->ints.primitives];
    *piece = (struct piece){.primitive = r->scene->ints.primitives++, .material = r->material, .shape = shape, .share = WHOLE, .u = {0, 1}, .v = {0, 1}};
    int transformation = shape_numbers[shape] - count;
    memcpy(piece->numbers, r->matrix[r->depth], (size_t)transformation * sizeof(double));
    if (count > 0)
        memcpy(piece->numbers + transformation, numbers, (size_t)count * sizeof(double));
    for (int k = 0; k < shape_numbers[shape]; k++)
        if (!(fabs(piece->numbers[k]) <= READER_MAX_COORDINATE))
            return reader_refuse(r, "after its transformation the primitive is too large, or too far away: more than %g", READER_MAX_COORDINATE);
    return 1;
}

/* Adds a ball that casts a shadow, with its centre and radius in the current transformation. */
static int reader_cast(struct reader *r, struct vec at, double radius)
{
    if (r->scene->ints.casters == MAX_CASTERS)
        return reader_refuse(r, "there are already %d balls with shadows, which is the maximum", MAX_CASTERS);
    const double *m = r->matrix[r->depth];
    double volume = vec_dot(vec_cross(reader_vec(m), reader_vec(m + 3)), reader_vec(m + 6));
    r->scene->numbers.casters[r->scene->ints.casters++] = (struct caster){matrix_point(m, at), radius * cbrt(fabs(volume))};
    return 1;
}

/* Adds a surface that is described by points, which are transformed here. */
static int reader_add_points(struct reader *r, enum shape shape, const double *points)
{
    double placed[MAX_SHAPE_NUMBERS];
    for (int k = 0; k < shape_numbers[shape]; k += 3) {
        struct vec p = matrix_point(r->matrix[r->depth], reader_vec(points + k));
        memcpy(placed + k, (double[3]){p.x, p.y, p.z}, 3 * sizeof *placed);
    }
    return reader_add(r, shape, placed, shape_numbers[shape]);
}

static int read_quad(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_add_points(r, QUAD, n);
}

static int read_patch(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_add_points(r, PATCH, n);
}

/* Reads a polygon. It becomes a quad for each corner: between the corner, the middles of its two edges, and the centre
 * of all corners. */
static int read_polygon(struct reader *r, const double *n, int count)
{
    int corners = count / 3;
    struct vec middle = vec(0, 0, 0);
    for (int k = 0; k < corners; k++)
        middle = vec_add(middle, 1.0 / corners, reader_vec(n + 3 * k));
    for (int k = 0; k < corners; k++) {
        struct vec corner = reader_vec(n + 3 * k);
        struct vec ahead = vec_mix(corner, reader_vec(n + 3 * ((k + 1) % corners)), 0.5);
        struct vec back = vec_mix(corner, reader_vec(n + 3 * ((k + corners - 1) % corners)), 0.5);
        double quad[12] = {corner.x, corner.y, corner.z, ahead.x, ahead.y, ahead.z, back.x, back.y, back.z, middle.x, middle.y, middle.z};
        if (!reader_add_points(r, QUAD, quad))
            return 0;
    }
    return 1;
}

static int reader_sized(const struct reader *r, double size)
{
    return size > 0 || reader_refuse(r, "a radius must be more than 0, not %g", size);
}

/* Begins a transformation that turns a sphere of radius 1 into one of this radius. */
static int reader_begin_sized(struct reader *r, double radius)
{
    return reader_sized(r, radius) && read_begin(r, NULL, 0) && read_scale(r, (double[]){radius, radius, radius}, 3);
}

static int read_sphere(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_begin_sized(r, n[0]) && reader_add(r, SPHERE, NULL, 0) && reader_cast(r, vec(0, 0, 0), 1) && read_end(r, NULL, 0);
}

static int read_shadow(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_sized(r, n[0]) && reader_cast(r, vec(0, 0, 0), n[0]);
}

static int read_flake(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[1] != floor(n[1]) || n[1] < 0 || n[1] > 6)
        return reader_refuse(r, "the generations of a flake must be 0 to 6, not %g", n[1]);
    return reader_begin_sized(r, n[0]) && reader_add(r, FLAKE, n + 1, 1) && reader_cast(r, vec(0, 0, 0), 1.15) && read_end(r, NULL, 0);
}

/* Reads a cone: the radii at the bottom and at the top, and the height. */
static int read_cone(struct reader *r, const double *n, int count)
{
    (void)count;
    if (n[0] < 0 || n[1] < 0 || n[0] + n[1] == 0 || n[2] < 0)
        return reader_refuse(r, "the radii and the height of a cone must be 0 or more, and one radius more than 0");
    return reader_add(r, CONE, n, 3);
}

static int read_cylinder(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_sized(r, n[0]) && read_cone(r, (double[]){n[0], n[0], n[1]}, 3);
}

static int read_disk(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_sized(r, n[0]) && read_cone(r, (double[]){n[0], 0, 0}, 3);
}

static int read_torus(struct reader *r, const double *n, int count)
{
    (void)count;
    return reader_sized(r, n[0]) && reader_sized(r, n[1]) && reader_add(r, TORUS, n, 2);
}

/* ---- materials ------------------------------------------------------------------------------------- */

static int reader_number(const struct reader *r, const char *word, double *number)
{
    char *end;
    *number = strtod(word, &end);
    if (end == word || *end || !isfinite(*number))
        return reader_refuse(r, "`%s` is not a number", word);
    if (fabs(*number) > READER_MAX_NUMBER)
        return reader_refuse(r, "%s is too large: numbers are up to %g", word, READER_MAX_NUMBER);
    return 1;
}

/* Reads an option and the numbers that follow its name. Returns the number of words it consists of, or 0 on error. */
static int reader_option(struct reader *r, struct material *m, int *relief, char **words, int count)
{
    static const char *const reliefs[] = {"bumps", "mountains", "twist"};
    const struct {
        const char *name;
        double *numbers;
        int count;
    } options[] = {{"second", &m->second.x, 3}, {"scale", &m->scale, 1},   {"specular", &m->specular, 2}, {"mirror", &m->mirror, 1},
                   {"opacity", &m->opacity, 1}, {"bumps", &m->height, 2},  {"mountains", &m->height, 2},  {"twist", &m->height, 2}};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        if (strcmp(words[0], options[k].name) != 0)
            continue;
        if (count <= options[k].count)
            return reader_refuse(r, "`%s` takes %d numbers", words[0], options[k].count);
        for (int i = 0; i < options[k].count; i++)
            if (!reader_number(r, words[1 + i], options[k].numbers + i))
                return 0;
        for (int i = 0; i < 3; i++)
            if (strcmp(words[0], reliefs[i]) == 0)
                *relief = BUMPS + i;
        return 1 + options[k].count;
    }
    return reader_refuse(r, "a material has no `%s`", words[0]);
}

/* Reads `material NAME SHADER R G B` and its options. */
static int read_material(struct reader *r, char **words, int count)
{
    static const char *const shaders[SHADERS] = {"plain", "checker", "marble", "wood", "bands", "land"};
    int shader = 0, number = r->scene->ints.materials;
    if (number == MAX_MATERIALS)
        return reader_refuse(r, "there are already %d materials, which is the maximum", MAX_MATERIALS);
    if (count < 6)
        return reader_refuse(r, "a material has a name, a shader, and red, green and blue");
    while (shader < SHADERS && strcmp(shaders[shader], words[2]) != 0)
        shader++;
    if (shader == SHADERS)
        return reader_refuse(r, "there is no shader `%s`", words[2]);
    if (strlen(words[1]) >= MAX_NAME)
        return reader_refuse(r, "a name has %d letters at most", MAX_NAME - 1);
    struct material m = {.scale = 1, .gloss = 20, .opacity = 1, .relief_scale = 1};
    if (!reader_number(r, words[3], &m.colour.x) || !reader_number(r, words[4], &m.colour.y) || !reader_number(r, words[5], &m.colour.z))
        return 0;
    r->scene->ints.relief[number] = EVEN;
    for (int at = 6; at < count;) {
        int taken = reader_option(r, &m, &r->scene->ints.relief[number], words + at, count - at);
        if (!taken)
            return 0;
        at += taken;
    }
    if (m.scale < READER_MIN_SCALE || m.relief_scale < READER_MIN_SCALE)
        return reader_refuse(r, "the scale of a pattern or a relief is %g or more", READER_MIN_SCALE);
    if (m.opacity < 0 || m.opacity > 1 || m.mirror < 0 || m.mirror > 1 || m.height < 0 || m.gloss < 0)
        return reader_refuse(r, "an opacity and a mirror are 0 to 1, a gloss and the height of a relief 0 or more");
    strcpy(r->names[number], words[1]);
    r->scene->ints.shader[number] = shader;
    r->scene->numbers.materials[number] = m;
    r->material = r->scene->ints.materials++;
    return 1;
}

static int read_use(struct reader *r, char **words, int count)
{
    for (int k = 0; count == 2 && k < r->scene->ints.materials; k++)
        if (strcmp(r->names[k], words[1]) == 0) {
            r->material = k;
            return 1;
        }
    return reader_refuse(r, count == 2 ? "there is no material `%s`" : "`use` takes the name of a material", words[count - 1]);
}

/* ---- the file -------------------------------------------------------------------------------------- */

/* Statements by name, with the count of numbers that each takes; -1: three numbers for each of three or more points. */
static const struct {
    const char *name;
    int numbers;
    int (*read)(struct reader *r, const double *numbers, int count);
} reader_statements[] = {
    {"camera", 7, read_camera}, {"samples", 1, read_samples}, {"rate", 1, read_rate}, {"sky", 9, read_sky}, {"fog", 4, read_fog},
    {"clouds", 1, read_clouds}, {"sun", 7, read_sun}, {"lamp", 7, read_lamp}, {"shadow", 1, read_shadow},
    {"begin", 0, read_begin}, {"end", 0, read_end}, {"move", 3, read_move}, {"scale", 3, read_scale}, {"turn", 4, read_turn},
    {"quad", 12, read_quad}, {"polygon", -1, read_polygon}, {"patch", 48, read_patch}, {"sphere", 1, read_sphere}, {"cone", 3, read_cone},
    {"cylinder", 2, read_cylinder}, {"disk", 1, read_disk}, {"torus", 2, read_torus}, {"flake", 2, read_flake},
};

static int reader_statement(struct reader *r, char **words, int count)
{
    if (strcmp(words[0], "material") == 0)
        return read_material(r, words, count);
    if (strcmp(words[0], "use") == 0)
        return read_use(r, words, count);
    for (size_t k = 0; k < sizeof reader_statements / sizeof *reader_statements; k++) {
        if (strcmp(words[0], reader_statements[k].name) != 0)
            continue;
        double numbers[MAX_WORDS];
        int wanted = reader_statements[k].numbers, given = count - 1;
        if (wanted < 0 && (given < 9 || given % 3 != 0))
            return reader_refuse(r, "`%s` takes three numbers for each of three or more points, not %d numbers", words[0], given);
        if (wanted >= 0 && given != wanted)
            return reader_refuse(r, "`%s` takes %d numbers, not %d", words[0], wanted, given);
        for (int i = 0; i < given; i++)
            if (!reader_number(r, words[1 + i], numbers + i))
                return 0;
        return reader_statements[k].read(r, numbers, given);
    }
    return reader_refuse(r, "there is no statement `%s`", words[0]);
}

static int reader_line(struct reader *r, char *line)
{
    char *words[MAX_WORDS], *comment = strchr(line, '#'), *rest;
    int count = 0;
    if (comment)
        *comment = 0;
    for (char *word = strtok_r(line, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (count == MAX_WORDS)
            return reader_refuse(r, "a line has %d words at most", MAX_WORDS);
        words[count++] = word;
    }
    return count == 0 || reader_statement(r, words, count);
}

/* Computes the axes of the camera from its position and the point that it looks at. Returns 0 if the scene is
 * incomplete. */
static int reader_finish(struct reader *r)
{
    struct scene_numbers *n = &r->scene->numbers;
    if (r->angle == 0)
        return reader_refuse(r, "the scene ends without a `camera`");
    if (r->depth > 0)
        return reader_refuse(r, "the scene ends with a `begin` that has no `end`");
    if (r->scene->ints.primitives == 0)
        return reader_refuse(r, "the scene ends without a primitive");
    n->ahead = vec_unit(vec_sub(r->at, n->eye));
    n->right = vec_unit(vec_cross(vec(0, 1, 0), n->ahead));
    n->up = vec_cross(n->ahead, n->right);
    n->focal = r->scene->ints.height / 2.0 / tan(r->angle * PI / 360);
    return 1;
}

static int reader_lines(struct reader *r, FILE *file)
{
    char line[MAX_LINE];
    while (fgets(line, sizeof line, file)) {
        r->line++;
        if (strlen(line) + 1 == sizeof line)
            return reader_refuse(r, "a line has %d letters at most", MAX_LINE - 2);
        if (!reader_line(r, line))
            return 0;
    }
    return ferror(file) ? reader_refuse(r, "cannot read on: %s", strerror(errno)) : reader_finish(r);
}

/* Reads the scene of a file for a picture whose size `scene` already has. Returns its primitives as pieces, or NULL
 * after printing an error. */
static struct piece *read_scene(const char *name, struct scene *scene)
{
    struct reader r = {.file = name, .scene = scene, .material = -1, .matrix = {{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}}};
    FILE *file = fopen(name, "r");
    if (!file) {
        fprintf(stderr, "ribbit: cannot open the scene %s: %s\n", name, strerror(errno));
        return NULL;
    }
    scene->ints.samples = 4;
    scene->numbers.rate = 1;
    scene->ints.valid = reader_lines(&r, file);
    fclose(file);
    if (scene->ints.valid)
        return r.pieces;
    free(r.pieces);
    return NULL;
}

#endif
