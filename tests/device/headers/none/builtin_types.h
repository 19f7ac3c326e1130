/* Of the CUDA runtime, whose headers are another package, CUPTI's headers name this one, and need
   nothing of it. */
