/* vector.h: points, directions and colours, three numbers each. */
#ifndef RIBBIT_VECTOR_H
#define RIBBIT_VECTOR_H

#include <math.h>

#define PI 3.14159265358979323846

struct vec {
    double x, y, z;
};

static inline struct vec vec(double x, double y, double z)
{
    return (struct vec){x, y, z};
}

/* Returns a + scale * b. */
static inline struct vec vec_add(struct vec a, double scale, struct vec b)
{
    return vec(a.x + scale * b.x, a.y + scale * b.y, a.z + scale * b.z);
}

static inline struct vec vec_sub(struct vec a, struct vec b)
{
    return vec_add(a, -1, b);
}

static inline struct vec vec_scaled(struct vec a, double scale)
{
    return vec(a.x * scale, a.y * scale, a.z * scale);
}

/* Returns the products of coordinates: a colour in light of another colour. */
static inline struct vec vec_times(struct vec a, struct vec b)
{
    return vec(a.x * b.x, a.y * b.y, a.z * b.z);
}

static inline double vec_dot(struct vec a, struct vec b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline struct vec vec_cross(struct vec a, struct vec b)
{
    return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

static inline double vec_length(struct vec a)
{
    return sqrt(vec_dot(a, a));
}

/* Returns the unit vector in the direction of a, or a itself if its length is 0. */
static inline struct vec vec_unit(struct vec a)
{
    double length = vec_length(a);
    return length > 0 ? vec_scaled(a, 1 / length) : a;
}

/* Interpolates: returns a for t = 0, b for t = 1. */
static inline struct vec vec_mix(struct vec a, struct vec b, double t)
{
    return vec_add(vec_scaled(a, 1 - t), t, b);
}

static inline double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Returns 0 below `low`, 1 above `high`, and a smooth curve between them. */
static inline double smooth_step(double low, double high, double value)
{
    double t = clamp((value - low) / (high - low), 0, 1);
    return t * t * (3 - 2 * t);
}

/* Transforms a direction. A matrix has twelve numbers: the images of the three axes and of the origin. */
static inline struct vec matrix_direction(const double m[12], struct vec d)
{
    return vec(m[0] * d.x + m[3] * d.y + m[6] * d.z, m[1] * d.x + m[4] * d.y + m[7] * d.z, m[2] * d.x + m[5] * d.y + m[8] * d.z);
}

static inline struct vec matrix_point(const double m[12], struct vec p)
{
    return vec_add(matrix_direction(m, p), 1, vec(m[9], m[10], m[11]));
}

/* Returns the image of a normal, that of the inverse transposed matrix except for its length. */
static inline struct vec matrix_normal(const double m[12], struct vec n)
{
    struct vec x = vec(m[0], m[1], m[2]), y = vec(m[3], m[4], m[5]), z = vec(m[6], m[7], m[8]);
    struct vec image = vec_scaled(vec_cross(y, z), n.x);
    image = vec_add(image, n.y, vec_cross(z, x));
    return vec_add(image, n.z, vec_cross(x, y));
}

/* Sets `m` to the transformation that applies `inner` first and then the former `m`. */
static inline void matrix_then(double m[12], const double inner[12])
{
    double product[12];
    for (int column = 0; column < 4; column++) {
        struct vec v = vec(inner[3 * column], inner[3 * column + 1], inner[3 * column + 2]);
        v = column < 3 ? matrix_direction(m, v) : matrix_point(m, v);
        product[3 * column] = v.x;
        product[3 * column + 1] = v.y;
        product[3 * column + 2] = v.z;
    }
    for (int k = 0; k < 12; k++)
        m[k] = product[k];
}

#endif
