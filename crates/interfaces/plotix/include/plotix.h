/*
 * plotix.h: Plotix, pictures of node programs, as Regatta has it.
 *
 * The calls are those of Unix' plot(3), with any numbers as coordinates; they return 0, or -1 when they have failed, and have said why on
 * standard error. All nodes draw one picture. openpl comes first; erase, sendplot and closepl are called by all nodes together, every other
 * call by each node for itself, with a space, a style and a current point of its own. The shapes that nodes have drawn are brought together in their
 * order by those three calls; nodes that have drawn the same have drawn it once.
 *
 * Node 0 writes each picture as SVG, as PNG, or both: the end of the file's name says so. The name is that given to plotfile, or else the
 * variable REGATTA_PLOT, or else "plot".
 */
#ifndef REGATTA_PLOTIX_H
#define REGATTA_PLOTIX_H

#ifdef __cplusplus
extern "C" {
#endif

int openpl(void);
/* Write the picture. */
int closepl(void);
/* Write the picture, and start another frame; nothing is written of one that is empty. */
int erase(void);
/* Bring together what the nodes have drawn. */
int sendplot(void);
/* Name the files, without an end (.svg, .png) both. Frames behind the first get a number. Regatta's own call; node 0's counts. */
int plotfile(const char *name);

/* The lower left and the upper right corner of the plane that is drawn; (0, 0) and (1, 1) until this is called. */
int space(double x0, double y0, double x1, double y1);
/* "solid", "dotted", "shortdashed", "longdashed", "dotdashed" */
int linemod(const char *style);

int move(double x, double y);
/* From the current point. */
int cont(double x, double y);
int line(double x0, double y0, double x1, double y1);
int box(double x0, double y0, double x1, double y1);
int point(double x, double y);
int circle(double x, double y, double radius);
/* Around (x, y), counter-clockwise from (x0, y0) to the direction of (x1, y1). */
int arc(double x, double y, double x0, double y0, double x1, double y1);
/* The first character is centred on the current point. */
int label(const char *text);

#ifdef __cplusplus
}
#endif
#endif
