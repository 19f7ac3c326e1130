// One thread, which builds up what programs have (texts, tables, arrays that grow), comes to one
// highest point, and takes it down. usage: peak SEED
#include <cstdlib>
#include <list>
#include <map>
#include <random>
#include <string>
#include <vector>

int main(int argc, char **argv) {
  std::mt19937 draw(argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1u);
  std::map<std::string, std::vector<double>> table;
  std::list<std::string> texts;
  for (int i = 0; i < 20000; i++) {
    table[std::string(draw() % 60, 'a') + std::to_string(draw() % 5000)].push_back(i);
    texts.emplace_back(draw() % 200, 'b');
    if (draw() % 3 == 0) texts.pop_front();
    if (draw() % 7 == 0) table.erase(table.begin());
  }
  {
    const std::vector<char> highest(
        10000019, 'c');  // so that no rule of rounding makes another moment the highest
    texts.emplace_back(draw() % 1000, 'd');
    void *grows = nullptr;
    for (std::size_t bytes = 1; bytes < 100000; bytes = bytes * 2 + draw() % 10)
      grows = std::realloc(grows, bytes);
    std::free(grows);
    if (highest.empty()) return 1;
  }
  while (texts.size() > 10) texts.pop_back();
  return table.empty();
}
