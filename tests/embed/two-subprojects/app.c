/* Has never heard of prof: both parts do, and the environment records them. */
void one_works(void);
void two_works(void);

int main(void) {
  one_works();
  two_works();
  return 0;
}
