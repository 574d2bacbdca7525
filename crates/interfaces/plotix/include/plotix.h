/*
 * plotix.h: Plotix, pictures of node programs, as Regatta has it.
 *
  * The calls are those of Unix' plot(3), with any numbers as coordinates. They return 0; a call that fails prints the reason on standard error and
 * returns -1. All nodes draw one picture. openpl comes first. All nodes call erase, sendplot and closepl together; each node makes every other
 * call independently, with a space, a style and a current point of its own. These three calls collect the shapes of all nodes, in the order of the
 * nodes; equal parts are drawn once.
 *
 * Node 0 writes each picture as SVG, as PNG, or both, depending on the suffix of the file's name. The name is that given to plotfile, otherwise that
 * in the variable REGATTA_PLOT, otherwise "plot".
 */
#ifndef REGATTA_PLOTIX_H
#define REGATTA_PLOTIX_H

#ifdef __cplusplus
extern "C" {
#endif

int openpl(void);
/* Writes the picture. */
int closepl(void);
/* Writes the picture, unless it is empty, and starts another frame. */
int erase(void);
/* Collects the shapes that the nodes have drawn. */
int sendplot(void);
/* Sets the name of the files; a name without a suffix (.svg, .png) writes both. Frames after the first get a number. An addition of Regatta; only
 * node 0's call counts. */
int plotfile(const char *name);

/* Sets the lower left and the upper right corner of the part of the plane that is drawn; initially (0, 0) and (1, 1). */
int space(double x0, double y0, double x1, double y1);
/* "solid", "dotted", "shortdashed", "longdashed", "dotdashed" */
int linemod(const char *style);

int move(double x, double y);
/* Draws from the current point. */
int cont(double x, double y);
int line(double x0, double y0, double x1, double y1);
int box(double x0, double y0, double x1, double y1);
int point(double x, double y);
int circle(double x, double y, double radius);
/* Draws around (x, y), counter-clockwise from (x0, y0) to the direction of (x1, y1). */
int arc(double x, double y, double x0, double y0, double x1, double y1);
/* Draws a text whose first character is centred on the current point. */
int label(const char *text);

#ifdef __cplusplus
}
#endif
#endif
