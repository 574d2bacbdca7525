/*
 * libgpvm3: the library that PVM's programs name for groups.
 *
 * With Regatta groups are in libpvm3, next to the messages they are made of; this library is there to be
 * found, and brings libpvm3 with it.
 */
const char regatta_gpvm3[] = "groups are in libpvm3";
