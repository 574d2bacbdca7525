/* shapes.h: the primitives as surfaces over u and v: their points, points that enclose them, and how a piece is split.
 * */
#ifndef RIBBIT_SHAPES_H
#define RIBBIT_SHAPES_H

#include "scene.h"

enum { MAX_HULL = 16 /* points that enclose a piece */, MAX_CHILDREN = 10 /* of one split */ };

static struct vec shape_corner(const double *numbers, int k)
{
    return vec(numbers[3 * k], numbers[3 * k + 1], numbers[3 * k + 2]);
}

/* ---- quads and patches ------------------------------------------------------------------------------ */

static struct vec quad_point(const double *corners, double u, double v)
{
    struct vec low = vec_mix(shape_corner(corners, 0), shape_corner(corners, 1), u);
    struct vec high = vec_mix(shape_corner(corners, 2), shape_corner(corners, 3), u);
    return vec_mix(low, high, v);
}

static struct vec quad_normal(const double *corners, double u, double v)
{
    struct vec along = vec_mix(vec_sub(shape_corner(corners, 1), shape_corner(corners, 0)), vec_sub(shape_corner(corners, 3), shape_corner(corners, 2)), v);
    struct vec across = vec_mix(vec_sub(shape_corner(corners, 2), shape_corner(corners, 0)), vec_sub(shape_corner(corners, 3), shape_corner(corners, 1)), u);
    return vec_cross(along, across);
}

/* Computes the four weights of a cubic at t, and their derivatives. */
static void cubic_weights(double t, double weight[4], double slope[4])
{
    double s = 1 - t;
    weight[0] = s * s * s;
    weight[1] = 3 * s * s * t;
    weight[2] = 3 * s * t * t;
    weight[3] = t * t * t;
    slope[0] = -3 * s * s;
    slope[1] = 3 * s * (s - 2 * t);
    slope[2] = 3 * t * (2 * s - t);
    slope[3] = 3 * t * t;
}

/* Returns the point of a patch, and its derivatives along u and v. */
static struct vec patch_point(const double *control, double u, double v, struct vec *along, struct vec *across)
{
    double wu[4], su[4], wv[4], sv[4];
    struct vec p = vec(0, 0, 0);
    *along = *across = p;
    cubic_weights(u, wu, su);
    cubic_weights(v, wv, sv);
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 4; i++) {
            struct vec c = shape_corner(control, 4 * j + i);
            p = vec_add(p, wu[i] * wv[j], c);
            *along = vec_add(*along, su[i] * wv[j], c);
            *across = vec_add(*across, wu[i] * sv[j], c);
        }
    return p;
}

/* Returns the normal of a patch. Where edges of the patch meet in one point, the normal is taken beside that point. */
static struct vec patch_normal(const double *control, double u, double v)
{
    struct vec along, across, normal;
    patch_point(control, u, v, &along, &across);
    normal = vec_cross(along, across);
    if (vec_length(normal) > 1e-9 * (vec_dot(along, along) + vec_dot(across, across)))
        return normal;
    patch_point(control, u + 1e-3 * (0.5 - u), v + 1e-3 * (0.5 - v), &along, &across);
    return vec_cross(along, across);
}

/* Returns the blossom of a cubic at three parameters: the cubic's value if they are equal, control points of its parts
 * otherwise. */
static struct vec cubic_blossom(const struct vec c[4], double r, double s, double t)
{
    struct vec a = vec_mix(c[0], c[1], r), b = vec_mix(c[1], c[2], r), d = vec_mix(c[2], c[3], r);
    return vec_mix(vec_mix(a, b, s), vec_mix(b, d, s), t);
}

static void cubic_part(const struct vec c[4], const double range[2], struct vec part[4])
{
    double a = range[0], b = range[1];
    part[0] = cubic_blossom(c, a, a, a);
    part[1] = cubic_blossom(c, a, a, b);
    part[2] = cubic_blossom(c, a, b, b);
    part[3] = cubic_blossom(c, b, b, b);
}

/* Computes the control points of a part of a patch, which enclose it. */
static void patch_hull(const struct piece *piece, struct vec hull[16])
{
    struct vec rows[4][4];
    for (int j = 0; j < 4; j++) {
        struct vec row[4];
        for (int i = 0; i < 4; i++)
            row[i] = shape_corner(piece->numbers, 4 * j + i);
        cubic_part(row, piece->u, rows[j]);
    }
    for (int i = 0; i < 4; i++) {
        struct vec column[4] = {rows[0][i], rows[1][i], rows[2][i], rows[3][i]};
        cubic_part(column, piece->v, hull + 4 * i);
    }
}

/* ---- surfaces of revolution -------------------------------------------------------------------------- */

/* The profile at v of a surface of revolution around the y axis: its distance from the axis, its height, and the
 * derivatives of both. */
struct profile {
    double radius, height, radius_slope, height_slope;
};

static struct profile profile_at(const struct piece *piece, double v)
{
    const double *n = piece->numbers + 12;
    if (piece->shape == CONE)
        return (struct profile){n[0] + v * (n[1] - n[0]), v * n[2], n[1] - n[0], n[2]};
    double angle = piece->shape == SPHERE ? PI * (v - 0.5) : 2 * PI * v;
    double c = cos(angle), s = sin(angle), ring = piece->shape == SPHERE ? 0 : n[0], tube = piece->shape == SPHERE ? 1 : n[1];
    return (struct profile){ring + tube * c, tube * s, -tube * s, tube * c};
}

static struct vec revolved_point(const struct piece *piece, double u, double v)
{
    struct profile p = profile_at(piece, v);
    return matrix_point(piece->numbers, vec(p.radius * cos(2 * PI * u), p.height, p.radius * sin(2 * PI * u)));
}

static struct vec revolved_normal(const struct piece *piece, double u, double v)
{
    struct profile p = profile_at(piece, v);
    return matrix_normal(piece->numbers, vec(p.height_slope * cos(2 * PI * u), -p.radius_slope, p.height_slope * sin(2 * PI * u)));
}

/* Computes the least and the greatest cosine between two angles. */
static void cosine_range(double from, double to, double range[2])
{
    range[0] = fmin(cos(from), cos(to));
    range[1] = fmax(cos(from), cos(to));
    if (ceil(from / (2 * PI)) <= floor(to / (2 * PI)))
        range[1] = 1;
    if (ceil(from / (2 * PI) - 0.5) <= floor(to / (2 * PI) - 0.5))
        range[0] = -1;
}

/* Computes the least and the greatest radius and height of a part of the profile. */
static void profile_range(const struct piece *piece, double radius[2], double height[2])
{
    if (piece->shape == CONE) {
        struct profile a = profile_at(piece, piece->v[0]), b = profile_at(piece, piece->v[1]);
        radius[0] = fmin(a.radius, b.radius);
        radius[1] = fmax(a.radius, b.radius);
        height[0] = a.height;
        height[1] = b.height;
        return;
    }
    int sphere = piece->shape == SPHERE;
    double turn = sphere ? PI : 2 * PI, start = sphere ? -PI / 2 : 0;
    double from = start + turn * piece->v[0], to = start + turn * piece->v[1];
    double ring = sphere ? 0 : piece->numbers[12], tube = sphere ? 1 : piece->numbers[13];
    cosine_range(from, to, radius);
    cosine_range(from - PI / 2, to - PI / 2, height);
    for (int k = 0; k < 2; k++) {
        radius[k] = ring + tube * radius[k];
        height[k] *= tube;
    }
}

/* Writes the corners of a box around a part of the surface, transformed like the surface. */
static void box_hull(const double matrix[12], const double x[2], const double y[2], const double z[2], struct vec hull[8])
{
    for (int k = 0; k < 8; k++)
        hull[k] = matrix_point(matrix, vec(x[k & 1], y[k >> 1 & 1], z[k >> 2]));
}

static void revolved_hull(const struct piece *piece, struct vec hull[8])
{
    double radius[2], height[2], x[2], z[2];
    profile_range(piece, radius, height);
    cosine_range(2 * PI * piece->u[0], 2 * PI * piece->u[1], x);
    cosine_range(2 * PI * (piece->u[0] - 0.25), 2 * PI * (piece->u[1] - 0.25), z);
    double *ranges[2] = {x, z};
    for (int k = 0; k < 2; k++) {
        double *r = ranges[k], low = fmin(r[0] * radius[0], r[0] * radius[1]), high = fmax(r[1] * radius[0], r[1] * radius[1]);
        r[0] = low;
        r[1] = high;
    }
    box_hull(piece->numbers, x, height, z, hull);
}

/* ---- any shape -------------------------------------------------------------------------------------- */

static struct vec shape_point(const struct piece *piece, double u, double v)
{
    struct vec along, across;
    if (piece->shape == QUAD)
        return quad_point(piece->numbers, u, v);
    if (piece->shape == PATCH)
        return patch_point(piece->numbers, u, v, &along, &across);
    return revolved_point(piece, u, v);
}

/* Returns the unit normal of the surface. */
static struct vec shape_normal(const struct piece *piece, double u, double v)
{
    if (piece->shape == QUAD)
        return vec_unit(quad_normal(piece->numbers, u, v));
    if (piece->shape == PATCH)
        return vec_unit(patch_normal(piece->numbers, u, v));
    return vec_unit(revolved_normal(piece, u, v));
}

/* Writes points whose convex hull contains the piece. Returns their number. */
static int shape_hull(const struct piece *piece, struct vec hull[MAX_HULL])
{
    static const double all[2] = {-2, 2}; /* the spheres on a flake reach less than twice its radius */
    switch (piece->shape) {
    case QUAD:
        for (int k = 0; k < 4; k++)
            hull[k] = quad_point(piece->numbers, piece->u[k & 1], piece->v[k >> 1]);
        return 4;
    case PATCH:
        patch_hull(piece, hull);
        return 16;
    case FLAKE:
        box_hull(piece->numbers, all, all, all, hull);
        return 8;
    default:
        revolved_hull(piece, hull);
        return 8;
    }
}

/* ---- splitting --------------------------------------------------------------------------------------- */

/* Changes the transformation of a flake to that of a smaller one that touches it in a direction. */
static void flake_child(double matrix[12], struct vec up)
{
    struct vec side = vec_unit(vec_cross(up, fabs(up.x) < 0.9 ? vec(1, 0, 0) : vec(0, 0, 1))), third = vec_cross(side, up);
    double s = 1.0 / 3, distance = 1 + s;
    matrix_then(matrix, (double[12]){s * side.x, s * side.y, s * side.z, s * up.x, s * up.y, s * up.z, s * third.x, s * third.y, s * third.z,
                                     distance * up.x, distance * up.y, distance * up.z});
}

/* Splits a flake into its sphere and nine flakes of a third of its size: six around it and three above. */
static int split_flake(const struct piece *piece, struct piece children[MAX_CHILDREN])
{
    double generations = piece->numbers[12];
    children[0].shape = SPHERE;
    if (generations == 0)
        return 1;
    for (int k = 1; k <= 9; k++) {
        double turn = k <= 6 ? k * PI / 3 : k * 2 * PI / 3 + PI / 6, lift = k <= 6 ? 0 : 0.96;
        flake_child(children[k].numbers, vec(cos(turn) * cos(lift), sin(lift), sin(turn) * cos(lift)));
        children[k].numbers[12] = generations - 1;
    }
    return 1 + 9;
}

/* Splits a piece along u or along v, or a flake into its parts. Returns their number. Their shares add up to that of
 * the piece. */
static int shape_split(const struct piece *piece, int along_u, struct piece children[MAX_CHILDREN])
{
    int count = 2;
    for (int k = 0; k < (piece->shape == FLAKE ? MAX_CHILDREN : 2); k++)
        children[k] = *piece;
    if (piece->shape == FLAKE) {
        count = split_flake(piece, children);
    } else {
        int end = along_u ? 0 : 1;
        double middle = end == 0 ? (piece->u[0] + piece->u[1]) / 2 : (piece->v[0] + piece->v[1]) / 2;
        (end == 0 ? children[0].u : children[0].v)[1] = middle;
        (end == 0 ? children[1].u : children[1].v)[0] = middle;
    }
    double share = floor(piece->share / count), first = piece->first;
    if (share < 1) {
        fprintf(stderr, "ribbit: primitive %d was split too often: this is a fault of the program\n", piece->primitive);
        exit(1);
    }
    for (int k = 0; k < count; k++) {
        children[k].first = first;
        children[k].share = k + 1 < count ? share : piece->first + piece->share - first;
        first += share;
    }
    return count;
}

#endif
