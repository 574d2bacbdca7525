/* shading.h: the appearance of a surface: its relief, its pattern, and the light on it. */
#ifndef RIBBIT_SHADING_H
#define RIBBIT_SHADING_H

#include "shapes.h"
#include <stdint.h>

enum { OCTAVES = 6 /* of noise: the number of frequencies, each about twice the one before */ };

/* ---- noise ------------------------------------------------------------------------------------------ */

/* Returns a pseudo-random number between 0 and 1 that depends only on the three integers. */
static double noise_number(int64_t x, int64_t y, int64_t z)
{
    uint64_t h = (uint64_t)x * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)y * UINT64_C(0xC2B2AE3D27D4EB4F) ^ (uint64_t)z * UINT64_C(0x165667B19E3779F9);
    h = (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 32) * UINT64_C(0x94D049BB133111EB);
    return (double)(h >> 11) * 0x1p-53;
}

/* Returns a smooth function of the position between 0 and 1: pseudo-random at integer positions, interpolated between
 * them. */
static double noise(struct vec p)
{
    double fx = floor(p.x), fy = floor(p.y), fz = floor(p.z), x = p.x - fx, y = p.y - fy, z = p.z - fz;
    int64_t ix = (int64_t)fx, iy = (int64_t)fy, iz = (int64_t)fz;
    x = x * x * x * (x * (x * 6 - 15) + 10);
    y = y * y * y * (y * (y * 6 - 15) + 10);
    z = z * z * z * (z * (z * 6 - 15) + 10);
    double sum = 0;
    for (int k = 0; k < 8; k++) {
        int dx = k & 1, dy = k >> 1 & 1, dz = k >> 2;
        sum += (dx ? x : 1 - x) * (dy ? y : 1 - y) * (dz ? z : 1 - z) * noise_number(ix + dx, iy + dy, iz + dz);
    }
    return sum;
}

/* Returns noise of several frequencies, between 0 and 1. */
static double turbulence(struct vec p)
{
    double sum = 0, weight = 0.5;
    for (int k = 0; k < OCTAVES; k++, weight /= 2) {
        sum += weight * noise(p);
        p = vec_add(vec(17.3, 5.7, 31.1), 2.03, p);
    }
    return sum / (1 - 2 * weight);
}

/* Returns noise with sharp ridges, between 0 and 1. */
static double ridges(struct vec p)
{
    double sum = 0, weight = 0.5, above = 1;
    for (int k = 0; k < OCTAVES; k++, weight /= 2) {
        double ridge = 1 - fabs(2 * noise(p) - 1);
        sum += weight * ridge * ridge * above;
        above = clamp(2 * ridge * ridge, 0, 1);
        p = vec_add(vec(11.9, 3.1, 7.7), 2.07, p);
    }
    return sum / (1 - 2 * weight);
}

/* ---- relief ----------------------------------------------------------------------------------------- */

/* Returns 1 in the middle of a surface, falling to 0 at its edges. */
static double island(double u, double v)
{
    return smooth_step(0, 0.3, fmin(u, 1 - u)) * smooth_step(0, 0.3, fmin(v, 1 - v));
}

/* Returns how far a point of a surface is displaced along its normal: 0 to the material's height. */
static double relief_at(const struct scene *scene, int material, struct vec p, double u, double v)
{
    const struct material *m = &scene->numbers.materials[material];
    struct vec scaled = vec_scaled(p, 1 / m->relief_scale);
    switch (scene->ints.relief[material]) {
    case BUMPS:
        return m->height * turbulence(scaled);
    case MOUNTAINS:
        return m->height * ridges(scaled) * island(u, v);
    case TWIST:
        return m->height * (0.5 + 0.5 * sin(2 * PI * (floor(m->relief_scale) * u + 3 * v)));
    default:
        return 0;
    }
}

/* Returns a point of the surface after its displacement. */
static struct vec displaced_point(const struct scene *scene, const struct piece *piece, double u, double v)
{
    struct vec p = shape_point(piece, u, v);
    if (scene->ints.relief[piece->material] == EVEN)
        return p;
    return vec_add(p, relief_at(scene, piece->material, p, u, v), shape_normal(piece, u, v));
}

/* Returns the normal of the displaced surface. The step is not that of a grid, so neighbouring pieces get the same
 * normal. */
static struct vec displaced_normal(const struct scene *scene, const struct piece *piece, double u, double v)
{
    struct vec normal = shape_normal(piece, u, v);
    if (scene->ints.relief[piece->material] == EVEN)
        return normal;
    const double step = 2e-4;
    double du = u < 0.5 ? step : -step, dv = v < 0.5 ? step : -step;
    struct vec p = displaced_point(scene, piece, u, v);
    struct vec along = vec_scaled(vec_sub(displaced_point(scene, piece, u + du, v), p), 1 / du);
    struct vec across = vec_scaled(vec_sub(displaced_point(scene, piece, u, v + dv), p), 1 / dv);
    struct vec bent = vec_unit(vec_cross(along, across));
    return vec_length(bent) < 0.5 ? normal : vec_dot(bent, normal) < 0 ? vec_scaled(bent, -1) : bent;
}

/* ---- patterns --------------------------------------------------------------------------------------- */

static struct vec pattern_land(const struct material *m, struct vec p, struct vec normal)
{
    double wobble = turbulence(vec_scaled(p, 3 / m->scale)), height = p.y / m->scale + 0.5 * (wobble - 0.5);
    struct vec ground = vec_mix(m->colour, m->second, smooth_step(0.72, 0.86, fabs(normal.y) + 0.2 * (wobble - 0.5)));
    ground = vec_scaled(ground, 0.6 + 0.8 * wobble);
    double snow = smooth_step(0.62, 0.78, height) * smooth_step(0.45, 0.7, fabs(normal.y));
    double sand = 1 - smooth_step(0.02, 0.1, p.y / m->scale);
    return vec_mix(vec_mix(ground, vec(0.62, 0.53, 0.36), sand), vec(0.9, 0.93, 1), snow);
}

/* Returns the colour of a surface at a point, before lighting. */
static struct vec pattern(const struct scene *scene, int material, struct vec p, struct vec normal, double u, double v)
{
    const struct material *m = &scene->numbers.materials[material];
    struct vec s = vec_scaled(p, 1 / m->scale);
    double t = 0;
    switch (scene->ints.shader[material]) {
    case CHECKER:
        t = ((int64_t)floor(s.x) + (int64_t)floor(s.z)) & 1;
        break;
    case MARBLE:
        t = pow(0.5 + 0.5 * sin(2 * PI * (s.y + 0.4 * s.x) + 9 * turbulence(vec_scaled(s, 1.7))), 3);
        break;
    case WOOD: {
        struct vec grain = vec(s.x * 0.12, s.y, s.z);
        double ring = 6 * hypot(grain.y, grain.z) + 2.5 * turbulence(grain) + 0.25 * noise(vec_times(s, vec(3, 60, 60)));
        t = smooth_step(0, 0.85, ring - floor(ring)) * (1 - smooth_step(0.9, 1, ring - floor(ring)));
        break;
    }
    case BANDS:
        t = ((int64_t)floor(8 * u / m->scale) + (int64_t)floor(8 * v / m->scale)) & 1;
        break;
    case LAND:
        return pattern_land(m, p, normal);
    default:
        break;
    }
    return vec_mix(m->colour, m->second, t);
}

/* ---- light ------------------------------------------------------------------------------------------ */

/* Returns the part of the sky that clouds hide in a direction. Clouds are flat and far away. */
static double cloud_part(const struct scene *scene, struct vec direction)
{
    if (scene->numbers.clouds == 0 || direction.y < 0.01)
        return 0;
    struct vec place = vec(1.2 * direction.x / (direction.y + 0.08), 0.5, 2.2 * direction.z / (direction.y + 0.08));
    double edge = 0.72 - 0.5 * scene->numbers.clouds;
    return smooth_step(edge, edge + 0.2, turbulence(place)) * smooth_step(0.01, 0.15, direction.y);
}

/* Returns the background in a direction: the sky with its suns, or the ground. */
static struct vec sky(const struct scene *scene, struct vec direction)
{
    const struct scene_numbers *n = &scene->numbers;
    struct vec colour = vec_mix(n->horizon, n->zenith, sqrt(clamp(direction.y, 0, 1)));
    colour = vec_mix(colour, vec(0.95, 0.95, 0.97), 0.85 * cloud_part(scene, direction));
    colour = vec_mix(n->ground, colour, smooth_step(-0.12, 0.02, direction.y));
    for (int k = 0; k < scene->ints.lights; k++) {
        double towards = clamp(vec_dot(direction, n->lights[k].place), 0, 1);
        if (!n->lights[k].lamp && towards > 0)
            colour = vec_add(colour, 0.12 * pow(towards, 24) + 0.9 * smooth_step(0.9985, 0.9993, towards), n->lights[k].colour);
    }
    return colour;
}

/* Returns the part of a light's rays to a point that no ball blocks. */
static double lit_part(const struct scene *scene, const struct light *light, struct vec p, struct vec towards, double distance)
{
    double part = 1;
    for (int k = 0; k < scene->ints.casters && part > 0; k++) {
        const struct caster *caster = &scene->numbers.casters[k];
        struct vec centre = vec_sub(caster->centre, p);
        double along = vec_dot(centre, towards), beside = vec_dot(centre, centre) - along * along;
        if (along <= 0 || along > distance)
            continue;
        double clear = sqrt(fmax(beside, 0)) - caster->radius;
        part *= smooth_step(-1, 1, clear / (light->softness * along));
    }
    return part;
}

/* Returns the part of the sky's light that reaches a surface past the balls near it. */
static double open_part(const struct scene *scene, struct vec p, struct vec normal)
{
    double part = 1;
    for (int k = 0; k < scene->ints.casters; k++) {
        const struct caster *caster = &scene->numbers.casters[k];
        struct vec centre = vec_sub(caster->centre, p);
        double square = vec_dot(centre, centre), towards = vec_dot(normal, centre);
        if (towards > 0 && square > 0)
            part *= 1 - towards / sqrt(square) * fmin(caster->radius * caster->radius / square, 1);
    }
    return part;
}

/* A point of a grid after shading. */
struct shade {
    struct vec colour;
    double opacity;
};

/* Returns the light that a point of a piece sends to the eye. */
static struct shade shade_point(const struct scene *scene, const struct piece *piece, struct vec p, double u, double v)
{
    const struct scene_numbers *n = &scene->numbers;
    const struct material *m = &n->materials[piece->material];
    struct vec view = vec_sub(n->eye, p), normal = displaced_normal(scene, piece, u, v);
    double distance = vec_length(view);
    view = vec_scaled(view, 1 / distance);
    if (vec_dot(normal, view) < 0)
        normal = vec_scaled(normal, -1);

    struct vec base = pattern(scene, piece->material, p, normal, u, v), shine = vec(0, 0, 0);
    struct vec ambient = vec_scaled(vec_mix(n->ground, n->zenith, 0.5 + 0.5 * normal.y), 0.7 * open_part(scene, p, normal));
    struct vec colour = vec_times(base, ambient);
    for (int k = 0; k < scene->ints.lights; k++) {
        const struct light *light = &n->lights[k];
        struct vec towards = light->lamp ? vec_sub(light->place, p) : light->place;
        double reach = light->lamp ? vec_length(towards) : 1e9;
        towards = vec_unit(towards);
        double facing = vec_dot(normal, towards);
        if (facing <= 0)
            continue;
        double part = lit_part(scene, light, p, towards, reach), highlight = fmax(vec_dot(normal, vec_unit(vec_add(view, 1, towards))), 0);
        colour = vec_add(colour, part * facing, vec_times(base, light->colour));
        shine = vec_add(shine, part * m->specular * pow(highlight, m->gloss), light->colour);
    }
    double grazing = pow(1 - clamp(vec_dot(normal, view), 0, 1), 5), mirror = m->mirror > 0 ? m->mirror + (1 - m->mirror) * grazing : 0;
    if (mirror > 0) {
        struct vec reflected = vec_add(vec_scaled(normal, 2 * vec_dot(normal, view)), -1, view);
        colour = vec_mix(colour, vec_scaled(sky(scene, reflected), fmax(open_part(scene, p, reflected), 0.2)), mirror);
    }
    colour = vec_add(colour, 1, shine);
    if (n->fog_distance > 0)
        colour = vec_mix(n->fog, colour, exp(-distance * distance / (n->fog_distance * n->fog_distance)));
    return (struct shade){colour, fmin(m->opacity + (m->opacity < 1 ? mirror : 0), 1)};
}

#endif
