// Allocates by each operator new. The test finds the pieces that stay by their sizes.
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct alignas(128) wide {
  char bytes[128 * 10007];
};
struct failing {
  char bytes[1000081];
  failing() { throw 1; }
};

static std::vector<char> in_static(1000099);

int main() {
  static volatile void *kept[6];
  kept[0] = new char[1000003];
  kept[1] = ::operator new(1000033);
  kept[2] = new wide;
  kept[3] = new (std::nothrow) char[1000037];
  static std::string text(1000038, 'x');
  const auto gone = std::make_unique<char[]>(1000039);
  delete[] new char[1000081];
  delete new wide;
  ::operator delete(::operator new(1000081), std::size_t(1000081));
  try {
    delete new failing;
  } catch (int) {
  }
  try {
    kept[4] = new char[std::size_t(-1) / 4];
    return 1;
  } catch (const std::bad_alloc &) {
  }
  return kept[0] && kept[1] && kept[2] && kept[3] && gone && in_static.size() == 1000099 ? 0 : 1;
}
