#include "native.h"

#if defined(HAS_AVX2)
#pragma GCC target("avx2")
#define FIND_ERRORS find_errors_avx2
#include "cell_errors.h"
#endif
