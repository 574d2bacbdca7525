/* A picture of a scene without a message-passing environment, for comparison. */
#include "ribbit.h"

static void broadcast_scene(struct scene *scene)
{
    (void)scene;
}

static void send_parcel(struct parcel *parcel, int to)
{
    (void)parcel;
    (void)to;
}

static int receive_parcel(struct parcel *parcel)
{
    (void)parcel;
    return 0;
}

int main(int argc, char **argv)
{
    return ribbit(argc, argv, 0, 1);
}
