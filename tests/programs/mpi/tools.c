/*
 * The tool interface: initialization and finalization, control and performance variables, categories, the absence of
 * events, and error codes. It may be used before MPI_Init and after MPI_Finalize.
 */
#include "mpi_check.h"

#define GIVES(code, call)                                                                          \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != (code)) {                                                                     \
            fprintf(stderr, "%s:%d: %s: %d, and not " #code "\n", __FILE__, __LINE__, #call, code_); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void settings(void)
{
    int count = 0, provided = -1;
    GIVES(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&count));
    GIVES(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_finalize());
    SUCCEEDS(MPI_T_cvar_get_num(&count));
    CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        char name[64], text[256], value[512];
        int name_length = sizeof name, length = 5, verbosity, bind, scope, index, elements;
        MPI_Datatype type;
        MPI_T_enum values;
        MPI_T_cvar_handle handle;
        SUCCEEDS(MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &values, text, &length, &bind, &scope));
        CHECK(name_length == (int)strlen(name) + 1 && strlen(text) == 4 && length > 5);
        CHECK(values == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT);
        SUCCEEDS(MPI_T_cvar_get_index(name, &index));
        CHECK(index == i);
        SUCCEEDS(MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements));
        CHECK(type == MPI_CHAR || elements == 1);
        CHECK(elements <= (int)sizeof value);
        SUCCEEDS(MPI_T_cvar_read(handle, value));
        CHECK(type != MPI_CHAR || (int)strlen(value) + 1 == elements);
        GIVES(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(handle, value));
        MPI_T_cvar_handle stale = handle;
        SUCCEEDS(MPI_T_cvar_handle_free(&handle));
        CHECK(handle == MPI_T_CVAR_HANDLE_NULL);
        GIVES(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(stale, value));
    }
    GIVES(MPI_T_ERR_INVALID_INDEX, MPI_T_cvar_get_info(count, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    GIVES(MPI_T_ERR_INVALID_NAME, MPI_T_cvar_get_index("nothing", &count));
    GIVES(MPI_T_ERR_INVALID, MPI_T_cvar_get_num(NULL));
    SUCCEEDS(MPI_T_finalize());
}

static unsigned long long value_of(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = 12345;
    SUCCEEDS(MPI_T_pvar_read(session, handle, &value));
    return value;
}

static MPI_T_pvar_handle handle_of(MPI_T_pvar_session session, const char *name, int class)
{
    int index, count;
    MPI_T_pvar_handle handle;
    SUCCEEDS(MPI_T_pvar_get_index(name, class, &index));
    SUCCEEDS(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    CHECK(count == 1);
    return handle;
}

static void send_some(int count)
{
    int value = 7;
    MPI_Request requests[2];
    for (int i = 0; i < count; i++) {
        SUCCEEDS(MPI_Irecv(&value, 1, MPI_INT, me, 0, MPI_COMM_WORLD, &requests[0]));
        SUCCEEDS(MPI_Isend(&value, 1, MPI_INT, me, 0, MPI_COMM_WORLD, &requests[1]));
        SUCCEEDS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
}

static void counters(void)
{
    int provided, index;
    unsigned long long value;
    MPI_T_pvar_session session, other;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_pvar_session_create(&session));
    SUCCEEDS(MPI_T_pvar_session_create(&other));
    MPI_T_pvar_handle sent = handle_of(session, "regatta_messages_sent", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle bytes = handle_of(session, "regatta_bytes_sent", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle receives = handle_of(session, "regatta_receives", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle open = handle_of(session, "regatta_requests", MPI_T_PVAR_CLASS_LEVEL);
    MPI_T_pvar_handle comms = handle_of(session, "regatta_communicators", MPI_T_PVAR_CLASS_LEVEL);
    send_some(3);
    CHECK(value_of(session, sent) == 0);
    SUCCEEDS(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    send_some(5);
    CHECK(value_of(session, sent) == 5 && value_of(session, bytes) == 5 * sizeof(int));
    SUCCEEDS(MPI_T_pvar_stop(session, sent));
    send_some(2);
    CHECK(value_of(session, sent) == 5 && value_of(session, receives) == 7);
    SUCCEEDS(MPI_T_pvar_start(session, sent));
    SUCCEEDS(MPI_T_pvar_readreset(session, sent, &value));
    CHECK(value == 5 && value_of(session, sent) == 0);
    value = 100;
    SUCCEEDS(MPI_T_pvar_write(session, sent, &value));
    send_some(1);
    CHECK(value_of(session, sent) == 101);
    SUCCEEDS(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    CHECK(value_of(session, sent) == 0 && value_of(session, receives) == 0);
    MPI_Request request;
    int into;
    unsigned long long before = value_of(session, open), worlds = value_of(session, comms);
    SUCCEEDS(MPI_Irecv(&into, 1, MPI_INT, me, 1, MPI_COMM_WORLD, &request));
    CHECK(value_of(session, open) == before + 1);
    SUCCEEDS(MPI_Cancel(&request));
    SUCCEEDS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Comm twin;
    SUCCEEDS(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    CHECK(value_of(session, comms) == worlds + 1);
    SUCCEEDS(MPI_Comm_free(&twin));
    GIVES(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, open));
    GIVES(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, open));
    GIVES(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, sent, &value));
    GIVES(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &value));
    GIVES(MPI_T_ERR_INVALID_INDEX, MPI_T_pvar_handle_alloc(session, 99, NULL, &sent, &index));
    GIVES(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index("regatta_requests", MPI_T_PVAR_CLASS_TIMER, &index));
    SUCCEEDS(MPI_T_pvar_handle_free(session, &sent));
    CHECK(sent == MPI_T_PVAR_HANDLE_NULL);
    GIVES(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_handle_free(session, &sent));
    SUCCEEDS(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
    GIVES(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_start(session, bytes));
    int count, class, readonly, continuous, atomic;
    MPI_Datatype type;
    SUCCEEDS(MPI_T_pvar_get_num(&count));
    for (int i = 0; i < count; i++) {
        char name[64];
        int length = sizeof name;
        SUCCEEDS(MPI_T_pvar_get_info(i, name, &length, NULL, &class, &type, NULL, NULL, NULL, NULL, &readonly,
                                     &continuous, &atomic));
        CHECK(type == MPI_UNSIGNED_LONG_LONG && readonly == continuous && atomic != readonly);
    }
    SUCCEEDS(MPI_T_finalize());
}

static void categories(void)
{
    int provided, count, stamp;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_category_get_num(&count));
    SUCCEEDS(MPI_T_category_changed(&stamp));
    int all[2] = {0, 0}, found[2];
    for (int i = 0; i < count; i++) {
        char name[64];
        int length = sizeof name, controls, counters, inner, index, list[32];
        SUCCEEDS(MPI_T_category_get_info(i, name, &length, NULL, NULL, &controls, &counters, &inner));
        SUCCEEDS(MPI_T_category_get_index(name, &index));
        CHECK(index == i && inner == 0 && controls <= 32 && counters <= 32);
        SUCCEEDS(MPI_T_category_get_cvars(i, 32, list));
        CHECK(controls == 0 || list[controls - 1] == controls - 1);
        SUCCEEDS(MPI_T_category_get_pvars(i, 32, list));
        CHECK(counters == 0 || list[counters - 1] == counters - 1);
        SUCCEEDS(MPI_T_category_get_categories(i, 32, list));
        SUCCEEDS(MPI_T_category_get_events(i, 32, list));
        SUCCEEDS(MPI_T_category_get_num_events(i, &inner));
        CHECK(inner == 0);
        all[0] += controls;
        all[1] += counters;
    }
    SUCCEEDS(MPI_T_cvar_get_num(&found[0]));
    SUCCEEDS(MPI_T_pvar_get_num(&found[1]));
    CHECK(all[0] == found[0] && all[1] == found[1]);
    GIVES(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("nothing", &count));
    GIVES(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_cvars(-1, 0, NULL));
    SUCCEEDS(MPI_T_event_get_num(&count));
    CHECK(count == 0);
    SUCCEEDS(MPI_T_source_get_num(&count));
    CHECK(count == 0);
    GIVES(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("nothing", &count));
    MPI_Count ticks;
    GIVES(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(0, &ticks));
    GIVES(MPI_T_ERR_INVALID_HANDLE, MPI_T_enum_get_info(MPI_T_ENUM_NULL, &count, NULL, NULL));
    char text[MPI_MAX_ERROR_STRING];
    SUCCEEDS(MPI_Error_string(MPI_T_ERR_INVALID_HANDLE, text, &count));
    CHECK(strstr(text, "MPI_T_enum_get_info") != NULL);
    SUCCEEDS(MPI_T_finalize());
}

int main(int argc, char **argv)
{
    static const struct scenario scenarios[] = {
        {"settings", settings}, {"counters", counters}, {"categories", categories}, {NULL, NULL},
    };
    int count = 0, provided;
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_cvar_get_num(&count));
    SUCCEEDS(MPI_T_finalize());
    int outcome = play(argc, argv, scenarios);
    SUCCEEDS(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    SUCCEEDS(MPI_T_finalize());
    return outcome;
}
