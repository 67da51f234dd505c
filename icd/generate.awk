# SPDX-License-Identifier: MIT
# usage: awk -v what=prototypes|table -f generate.awk entry_points.list
# Writes entry_points.h or dispatch.c on standard output.
BEGIN {
    print "/* SPDX-License-Identifier: MIT */"
    print "/* Generated from icd/entry_points.list by icd/generate.awk. */"
    if (what == "prototypes") {
        print "#ifndef TUTTI_ENTRY_POINTS_H\n#define TUTTI_ENTRY_POINTS_H\n"
        print "#include <CL/cl.h>\n#include <CL/cl_icd.h>\n"
    } else {
        print "#include \"entry_points.h\"\n#include \"object.h\"\n"
        print "const cl_icd_dispatch tutti_dispatch = {"
    }
}
/^#/ || NF == 0 { next }
{ slots++ }
what == "prototypes" && $2 == "function" {
    print "extern __typeof__(*((cl_icd_dispatch *)0)->" $1 ") tutti_" $1 ";"
}
what == "table" && $2 == "function" { print "    ." $1 " = tutti_" $1 "," }
what == "table" && $2 == "windows" {
    print "    ." $1 " = (void *)" ($1 ~ /^clCreate/ ? "tutti_refuse_object" : "tutti_refuse") ","
}
END {
    if (what == "prototypes") {
        print "\ncl_int CL_API_CALL tutti_refuse(void);\nvoid *CL_API_CALL tutti_refuse_object(void);\n\n#endif"
    } else {
        print "};\n"
        print "_Static_assert(sizeof(cl_icd_dispatch) == " slots " * sizeof(void *),"
        print "               \"these OpenCL headers have slots that icd/entry_points.list lacks\");"
    }
}
