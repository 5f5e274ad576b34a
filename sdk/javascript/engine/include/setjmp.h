/* The C library of the target has no setjmp.h, and of the one file of the engine
   that includes it nothing is used. */
