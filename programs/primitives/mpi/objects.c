/* Many keys of an MPI_Info (info-keys) and many attributes of a communicator (attributes), as many as the size says:
 * set, queried and freed by each task for itself. */
#ifdef ENV_MPI
#include "expect.h"

enum { MAX_ATTRIBUTES = 1000 };

static void info_keys(size_t number, long n)
{
    for (long i = 0; i < n; i++) {
        MPI_Info info;
        char key[32], value[32], found[32];
        int there, keys;
        MPI_Info_create(&info);
        for (size_t k = 0; k < number; k++) {
            snprintf(key, sizeof key, "key%zu", k);
            snprintf(value, sizeof value, "value%zu", k);
            MPI_Info_set(info, key, value);
        }
        for (size_t k = 0; k < number; k++) {
            snprintf(key, sizeof key, "key%zu", k);
            snprintf(value, sizeof value, "value%zu", k);
            MPI_Info_get(info, key, sizeof found - 1, found, &there);
            EXPECT(there && !strcmp(found, value), "MPI_Info_get", "a key has lost its value");
        }
        MPI_Info_get_nkeys(info, &keys);
        EXPECT((size_t)keys == number, "MPI_Info_get_nkeys", "there is another number of keys");
        MPI_Info_free(&info);
    }
}

static void attributes(size_t number, long n)
{
    static int keys[MAX_ATTRIBUTES], values[MAX_ATTRIBUTES];
    EXPECT(number <= MAX_ATTRIBUTES, "attributes", "it has no room for so many attributes");
    for (long i = 0; i < n; i++) {
        for (size_t k = 0; k < number; k++) {
            MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keys[k], NULL);
            MPI_Comm_set_attr(MPI_COMM_WORLD, keys[k], &values[k]);
        }
        for (size_t k = 0; k < number; k++) {
            void *found;
            int there;
            MPI_Comm_get_attr(MPI_COMM_WORLD, keys[k], &found, &there);
            EXPECT(there && found == &values[k], "MPI_Comm_get_attr", "an attribute has another value");
        }
        for (size_t k = 0; k < number; k++) {
            MPI_Comm_delete_attr(MPI_COMM_WORLD, keys[k]);
            MPI_Comm_free_keyval(&keys[k]);
        }
    }
}

OPERATION(info_keys, .name = "info-keys", .run = info_keys, .parts = 1, .unit = 1)
OPERATION(attributes, .name = "attributes", .run = attributes, .parts = 1, .unit = 1)
#endif
