// SQLite itself: Apple's module of this name has the same header, of a version of its own.
#include <sqlite3.h>
