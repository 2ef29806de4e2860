// C++ streams and std::filesystem: formatted, binary, seeking, appending, in place, through buffers of several sizes.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

static unsigned long sum(const std::string &name)
{
    std::ifstream in(name, std::ios::binary);
    unsigned long total = 0;
    for (std::istreambuf_iterator<char> at(in), end; at != end; ++at) total = total * 31 + static_cast<unsigned char>(*at);
    return total;
}

static void write_and_read()
{
    std::ofstream out("text");
    for (int k = 0; k < 20000; k++) out << k << ' ' << k * 0.5 << '\n';
    std::cout << out.tellp() << '\n';
    out.close();
    std::ifstream in("text");
    std::string line;
    long lines = 0, total = 0;
    for (int number; in >> number && std::getline(in, line); lines++) total += number;
    std::cout << lines << ' ' << total << ' ' << in.eof() << '\n';
    std::vector<int> numbers(30000);
    std::iota(numbers.begin(), numbers.end(), 1);
    std::ofstream("binary", std::ios::binary).write(reinterpret_cast<char *>(numbers.data()), 120000);
    std::ofstream("binary", std::ios::app | std::ios::binary) << "tail";
    std::cout << sum("text") << ' ' << sum("binary") << '\n';
}

static void seek_in_place()
{
    std::fstream both("binary", std::ios::in | std::ios::out | std::ios::binary);
    int number = 0;
    both.seekg(4 * 777).read(reinterpret_cast<char *>(&number), 4);
    std::cout << number << ' ' << both.tellg() << '\n';
    both.seekp(-2, std::ios::end) << "IL and more";
    both.seekg(0, std::ios::end);
    std::cout << both.tellg() << ' ' << both.good() << '\n';
    both.seekg(119998);
    std::string rest{std::istreambuf_iterator<char>(both), {}};
    std::cout << rest.size() << rest.substr(2) << '\n';
}

static void buffers()
{
    for (std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{70000}}) {
        std::vector<char> buffer(size);
        std::ofstream out;
        out.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(size));
        out.open("buffered");
        for (int k = 0; k < 3000; k++) out << "line " << k << std::flush << '\n';
        out.close();
        std::cout << size << ' ' << sum("buffered") << '\n';
    }
    std::ifstream none("none");
    std::cout << none.is_open() << none.fail() << '\n';
}

static void files()
{
    std::cout << fs::file_size("text") << fs::is_regular_file("text") << fs::is_symlink("text") << fs::exists("none") << '\n';
    fs::copy_file("text", "copy");
    fs::rename("copy", "renamed");
    fs::resize_file("renamed", 5000);
    fs::create_directory("directory");
    fs::copy("binary", "directory");
    fs::permissions("renamed", fs::perms::owner_read | fs::perms::owner_write);
    long bytes = 0;
    for (const auto &entry : fs::recursive_directory_iterator("."))
        if (entry.is_regular_file()) bytes += static_cast<long>(entry.file_size());
    std::cout << bytes << ' ' << sum("renamed") << fs::remove("buffered") << fs::remove_all("directory") << '\n';
}

static void c_streams()
{
    FILE *file = std::fopen("c", "w+");
    std::fprintf(file, "%d %s\n", 5, "word"), std::fputs("second\n", file), std::rewind(file);
    int number = 0;
    char word[20];
    std::cout << std::fscanf(file, "%d %19s", &number, word) << word << std::ftell(file) << (fileno(file) > 2) << '\n';
    std::fclose(file);
    std::ofstream out("wide");
    std::streambuf *before = std::cout.rdbuf(out.rdbuf());
    std::cout << "redirected\n";
    std::cout.rdbuf(before);
}

int main()
{
    write_and_read(), seek_in_place(), buffers(), files(), c_streams();
    return 0;
}
