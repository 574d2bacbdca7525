/*
 * libgpvm3: the group library with which PVM programs link.
 *
 * In Regatta the group functions are in libpvm3. This library exists so that -lgpvm3 is found; it depends on libpvm3.
 */
const char regatta_gpvm3[] = "groups are in libpvm3";
