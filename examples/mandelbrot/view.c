/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <math.h>

#define ROUNDS 20
#define WIDEST 3.0
#define ZOOM_OF_LAST_ROUND 100.0 /* beyond, single precision shows */

struct view view_top_heavy(void) {
    return (struct view){-0.6, -1.2, 4.8};
}

struct view view_of_series(unsigned long index) {
    static const double point[][2] = {
        {-0.743644, 0.131826}, {-0.162, 1.0405},     {-1.250660, 0.020121}, {0.2850, 0.0100},
        {-0.7450, -0.1130},    {-0.1015, -0.9563},   {-1.7686, 0.0018},     {0.3602, -0.1002},
        {-0.5528, 0.6280},     {-1.0400, -0.346200},
    };
    const unsigned long points = sizeof(point) / sizeof(point[0]);
    const unsigned long which = index % points, round = index / points % ROUNDS;
    const double zoom = pow(ZOOM_OF_LAST_ROUND, (double)round / (ROUNDS - 1));
    return (struct view){point[which][0], point[which][1], WIDEST / zoom};
}
