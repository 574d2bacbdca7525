/*
 * pvm_packf, pvm_unpackf and their variants that take a va_list.
 *
 * A format is a sequence of items, each %[count][.stride][h|l|u]...letter. Count and stride are numbers or a star,
 * which takes its value from an argument of type int. Characters outside items are skipped. An item with a count or a
 * stride is passed by address, any other by value. Packing and unpacking are done in Rust; this file only walks the
 * format and the arguments.
 */
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>

int pvm_initsend(int encoding);
int regatta_pvm_has_buffer(int packing);
int regatta_pvm_pack_item(int kind, const void *items, int count, int stride, int by_value);
int regatta_pvm_unpack_item(int kind, void *items, int count, int stride);
int regatta_pvm_pack_text(const char *text);
int regatta_pvm_unpack_text(char *text);
void regatta_pvm_format_begins(int packing, const char *format);
int regatta_pvm_format_result(int packing, const char *format, int code);

enum { BAD_PARAM = -2 };

/* The same values as in src/message/format.rs. */
enum kind {
    BYTE, SHORT, INT, LONG, USHORT, UINT, ULONG, FLOAT, DOUBLE, COMPLEX, DOUBLE_COMPLEX, TEXT, NOTHING
};

struct item {
    enum kind kind;
    int count, stride;
    int by_value;
};

/* Wraps a va_list so that a pointer to it can be passed: as a parameter a va_list may decay from an array. */
struct arguments {
    va_list list;
};

static int read_number(const char **at, struct arguments *arguments)
{
    int value = 0;

    if (**at == '*') {
        ++*at;
        return va_arg(arguments->list, int);
    }
    for (; isdigit((unsigned char)**at); ++*at) {
        int digit = **at - '0';
        value = value > (INT_MAX - digit) / 10 ? INT_MAX : value * 10 + digit;
    }
    return value;
}

static int is_number(char letter)
{
    return letter == '*' || isdigit((unsigned char)letter);
}

static enum kind kind_of(char letter, int is_short, int is_long, int is_unsigned)
{
    switch (letter) {
    case 'c':
        return BYTE;
    case 'd':
        if (is_long)
            return is_unsigned ? ULONG : LONG;
        if (is_short)
            return is_unsigned ? USHORT : SHORT;
        return is_unsigned ? UINT : INT;
    case 'f':
        return is_long ? DOUBLE : FLOAT;
    case 'x':
        return is_long ? DOUBLE_COMPLEX : COMPLEX;
    case 's':
        return TEXT;
    default:
        return NOTHING;
    }
}

/* Reads the item after a '%'. */
static struct item read_item(const char **at, struct arguments *arguments)
{
    struct item item = {NOTHING, 1, 1, 1};
    int is_short = 0, is_long = 0, is_unsigned = 0;

    if (is_number(**at)) {
        item.count = read_number(at, arguments);
        item.by_value = 0;
    }
    if (**at == '.') {
        ++*at;
        item.by_value = 0;
        if (is_number(**at))
            item.stride = read_number(at, arguments);
    }
    for (;; ++*at) {
        if (**at == 'h')
            is_short = 1;
        else if (**at == 'l')
            is_long = 1;
        else if (**at == 'u')
            is_unsigned = 1;
        else
            break;
    }
    if (**at)
        item.kind = kind_of(*(*at)++, is_short, is_long, is_unsigned);
    return item;
}

static int pack_value(enum kind kind, struct arguments *arguments)
{
    union {
        char byte;
        short small;
        int number;
        long large;
        float real;
        double precise;
    } value;

    switch (kind) {
    case BYTE:
        value.byte = (char)va_arg(arguments->list, int);
        break;
    case SHORT:
    case USHORT:
        value.small = (short)va_arg(arguments->list, int);
        break;
    case LONG:
    case ULONG:
        value.large = va_arg(arguments->list, long);
        break;
    case FLOAT:
        value.real = (float)va_arg(arguments->list, double);
        break;
    case DOUBLE:
        value.precise = va_arg(arguments->list, double);
        break;
    default:
        value.number = va_arg(arguments->list, int);
        break;
    }
    return regatta_pvm_pack_item(kind, &value, 1, 1, 1);
}

static int pack_item(struct item item, struct arguments *arguments)
{
    enum kind kind = item.kind;

    /* An unsigned long is packed as a long, and a tracer sees a long, too. */
    if (kind == ULONG)
        kind = LONG;
    if (kind == NOTHING)
        return BAD_PARAM;
    if (kind == TEXT)
        return regatta_pvm_pack_text(va_arg(arguments->list, const char *));
    /* Complex values are always passed by address. */
    if (item.by_value && kind != COMPLEX && kind != DOUBLE_COMPLEX)
        return pack_value(kind, arguments);
    return regatta_pvm_pack_item(kind, va_arg(arguments->list, const void *), item.count, item.stride, 0);
}

static int unpack_item(struct item item, struct arguments *arguments)
{
    if (item.kind == NOTHING)
        return BAD_PARAM;
    if (item.kind == TEXT)
        return regatta_pvm_unpack_text(va_arg(arguments->list, char *));
    return regatta_pvm_unpack_item(item.kind, va_arg(arguments->list, void *), item.count, item.stride);
}

static int walk(int packing, const char *at, struct arguments *arguments)
{
    int code = regatta_pvm_has_buffer(packing);

    while (!code && *at) {
        struct item item;

        if (*at++ != '%')
            continue;
        item = read_item(&at, arguments);
        code = packing ? pack_item(item, arguments) : unpack_item(item, arguments);
    }
    return code;
}

int regatta_pvm_vpackf(const char *format, va_list list)
{
    struct arguments arguments;
    const char *items = format;
    int code = 0;

    regatta_pvm_format_begins(1, format);
    va_copy(arguments.list, list);
    if (format[0] == '%' && format[1] == '+') {
        code = pvm_initsend(va_arg(arguments.list, int));
        items += 2;
    }
    if (code >= 0)
        code = walk(1, items, &arguments);
    va_end(arguments.list);
    return regatta_pvm_format_result(1, format, code);
}

int regatta_pvm_vunpackf(const char *format, va_list list)
{
    struct arguments arguments;
    int code;

    regatta_pvm_format_begins(0, format);
    va_copy(arguments.list, list);
    code = walk(0, format, &arguments);
    va_end(arguments.list);
    return regatta_pvm_format_result(0, format, code);
}

int regatta_pvm_packf(const char *format, ...)
{
    va_list list;
    int code;

    va_start(list, format);
    code = regatta_pvm_vpackf(format, list);
    va_end(list);
    return code;
}

int regatta_pvm_unpackf(const char *format, ...)
{
    va_list list;
    int code;

    va_start(list, format);
    code = regatta_pvm_vunpackf(format, list);
    va_end(list);
    return code;
}
