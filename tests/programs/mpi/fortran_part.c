/* The C part of a program whose main program is in Fortran. */
#include <mpi.h>
#include <stddef.h>

/* Checks an attribute that Fortran has set, as C sees it: the address of an integer. Returns 0 if it is right. */
int part_reads_(const MPI_Fint *comm, const int *keyval, const MPI_Aint *value)
{
    void *found = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *keyval, &found, &flag);
    return !(flag && *(MPI_Aint *)found == *value);
}

/* Sets an attribute in C: the address of a variable, which Fortran sees as an integer. */
void part_sets_(const MPI_Fint *comm, const int *keyval, MPI_Aint *value)
{
    static int variable = 5;
    *value = (MPI_Aint)&variable;
    MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *keyval, &variable);
}

/* Makes a datatype in C. */
void part_makes_(MPI_Fint *type)
{
    MPI_Datatype made;
    MPI_Type_vector(2, 1, 2, MPI_INT, &made);
    MPI_Type_commit(&made);
    *type = MPI_Type_c2f(made);
}

/* Returns whether C can read a status that Fortran has got. */
int part_sees_(const MPI_Fint *status, const int *source, const int *tag)
{
    MPI_Status here;
    int count = -1;
    MPI_Status_f2c(status, &here);
    MPI_Get_count(&here, MPI_INT, &count);
    return !(here.MPI_SOURCE == *source && here.MPI_TAG == *tag && count == 3);
}

/* Returns whether these are what C has for Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE. */
int part_ignores_(const MPI_Fint *status, const MPI_Fint *statuses)
{
    return !(status == MPI_F_STATUS_IGNORE && statuses == MPI_F_STATUSES_IGNORE && status == (MPI_Fint *)MPI_F08_STATUS_IGNORE &&
        statuses == (MPI_Fint *)MPI_F08_STATUSES_IGNORE);
}
