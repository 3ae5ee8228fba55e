#define FIND_ERRORS find_errors
#include "cell_errors.h"
