/*
 * cubix.h: Cubix, stdio for node programs, as Regatta has it.
 *
 * A node program uses the calls of stdio.h for files and the terminal without a host program. A stream is in one of
 * three modes:
 *
  *   single  all nodes make the same calls with the same data: one copy is written, and all nodes get the data that is read. This is the initial mode.
 *   multi   all nodes make the same calls with different data, which is written or read in the order of the nodes. Output is written to the file
 *           when all nodes call fflush or fclose, or end; only fread and fgets read.
 *   async   each node uses the file independently, with a position of its own.
 *
 * In single and multi mode all nodes open, flush, seek in, read and close a stream together, and change its mode together. stderr is always async. Results
 * are those of stdio.h; fsingl, fmulti and fasync return 0, or EOF. All of this is reconstructed (docs/express.md).
 *
 * Include this, or make the compiler include it (-include cubix.h), before the program's own text.
 */
#ifndef REGATTA_CUBIX_H
#define REGATTA_CUBIX_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

int fsingl(FILE *stream);
int fsingle(FILE *stream); /* the same */
int fmulti(FILE *stream);
int fasync(FILE *stream);
int ismulti(FILE *stream); /* 1 or 0 */

FILE *cubix_fopen(const char *path, const char *mode);
int cubix_fclose(FILE *stream);
int cubix_fflush(FILE *stream);
size_t cubix_fread(void *buf, size_t size, size_t items, FILE *stream);
char *cubix_fgets(char *buf, int size, FILE *stream);

#ifndef REGATTA_CUBIX_INSIDE
#define fopen(path, mode) cubix_fopen(path, mode)
#define fclose(stream) cubix_fclose(stream)
#define fflush(stream) cubix_fflush(stream)
#define fread(buf, size, items, stream) cubix_fread(buf, size, items, stream)
#define fgets(buf, size, stream) cubix_fgets(buf, size, stream)
#endif

#ifdef __cplusplus
}
#endif
#endif
