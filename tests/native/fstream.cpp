// fstream: C++ streams on files of a directory, and on standard input and output. What it prints must not depend on where the files are.
//
// usage: fstream DIRECTORY            files
//        fstream --copy [unsynced]    standard input to standard output and error
//        fstream --write N FILE       N lines on standard output, which is led to FILE while the program runs
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

static int files(const std::string &dir)
{
    const std::string name = dir + "/f";
    {
        std::ofstream out(name);
        for (int i = 0; i < 20000; i++) out << "line " << i << '\n';
        std::cout << "written " << out.tellp() << ' ' << out.good() << '\n';
    }
    {
        std::ifstream in(name);
        std::string line, last;
        int count = 0;
        while (std::getline(in, line)) count++, last = line;
        std::cout << count << ' ' << last << ' ' << in.eof() << '\n';
        in.clear();
        in.seekg(-11, std::ios::end);
        std::getline(in, line);
        std::cout << line << ' ' << in.tellg() << '\n';
    }
    {
        std::fstream both(name, std::ios::in | std::ios::out | std::ios::binary);
        both.seekp(5);
        both << "ABC";
        both.seekg(0);
        std::string word;
        both >> word >> word;
        std::cout << word << ' ' << both.good() << '\n';
    }
    {
        std::ofstream more(name, std::ios::app);
        more << "end";
        std::cout << more.tellp() << '\n';
    }
    {
        std::vector<char> block(2000003);
        for (size_t i = 0; i < block.size(); i++) block[i] = static_cast<char>(i * 7 >> 3);
        std::ofstream(name + "b", std::ios::binary).write(block.data(), static_cast<std::streamsize>(block.size()));
        std::vector<char> back(block.size() + 5);
        std::ifstream in(name + "b", std::ios::binary);
        in.read(back.data(), static_cast<std::streamsize>(back.size()));
        std::cout << in.gcount() << ' ' << (std::memcmp(back.data(), block.data(), block.size()) == 0) << '\n';
    }
    std::ifstream all(name);
    std::stringstream text;
    text << all.rdbuf();
    std::cout << text.str().size() << ' ' << std::ifstream(dir + "/absent").is_open() << '\n';
    return std::cout.good() ? 0 : 1;
}

int main(int argc, char **argv)
{
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "--copy") {
        if (argc > 2) std::ios::sync_with_stdio(false);
        std::string line;
        long lines = 0;
        while (std::getline(std::cin, line)) std::cout << line << '\n', lines++;
        std::cerr << lines << " lines" << std::endl;
        std::cout.flush();
        return std::cout.good() ? 0 : 1;
    }
    if (what == "--write" && argc == 4) {
        int fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd < 0 || dup2(fd, 1) != 1) return 2;
        std::ios::sync_with_stdio(false);
        for (int i = 0; i < std::stoi(argv[2]); i++) std::cout << i << '\n';
        std::cout.flush();
        return std::cout.good() ? 0 : 1;
    }
    return argc == 2 ? files(what) : 2;
}
