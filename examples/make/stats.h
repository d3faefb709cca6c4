double mean(const double *x, int n);
double median(double *x, int n);
