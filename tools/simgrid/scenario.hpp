// What is replayed: network, servers, and each process's requests cut into accesses, as compare.py writes them.
//
// Words apart by white space: establish_s, seconds per byte, processes per node, servers; of each server its name, channels, startup and seconds per byte
// of reads and of writes; processes; of each the number of its requests; of each whether it writes, its accesses, and of these server, address, bytes.

#pragma once

#include <simgrid/s4u.hpp>

#include <cstddef>
#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Access {
    std::uint32_t server;
    std::uint64_t address;
    std::uint64_t bytes;
};

struct Request {
    bool write;
    std::vector<Access> accesses;
};

// Times of one direction of a device.
struct Figures {
    double startup_s;
    double per_byte_s;
};

struct Server {
    std::string name;
    unsigned channels;
    Figures read;
    Figures write;
    sg4::Host* host = nullptr;
    sg4::SemaphorePtr slots;
    std::vector<sg4::Disk*> idle;
    std::uint64_t next_address = UINT64_MAX;
    double busy_s = 0;
    std::uint64_t accesses = 0;
    std::uint64_t startups = 0;
};

struct Network {
    bool present;
    double establish_s;
    double per_byte_s;
    unsigned processes_per_node;
};

struct Scenario {
    Network network{};
    std::vector<Server> servers;
    std::vector<std::vector<Request>> processes;
};

template <class T> T take(std::istream& in, const char* what) {
    T value;
    if (!(in >> value)) {
        throw std::runtime_error(std::string("the accesses end before ") + what + "; write the file again");
    }
    return value;
}

inline Request take_request(std::istream& in, std::size_t servers) {
    Request request{take<int>(in, "a direction") != 0, {}};
    request.accesses.resize(take<std::size_t>(in, "a number of accesses"));
    for (auto& access : request.accesses) {
        access = {take<std::uint32_t>(in, "a server"), take<std::uint64_t>(in, "an address"), take<std::uint64_t>(in, "a size")};
        if (access.server >= servers) {
            throw std::runtime_error("an access names a server that is not there; write the file again");
        }
    }
    return request;
}

inline Scenario take_scenario(std::istream& in) {
    Scenario scenario;
    auto& network = scenario.network;
    network.establish_s = take<double>(in, "the network");
    network.per_byte_s = take<double>(in, "the network");
    network.processes_per_node = take<unsigned>(in, "the network");
    network.present = network.per_byte_s > 0;
    scenario.servers.resize(take<std::size_t>(in, "the servers"));
    for (auto& server : scenario.servers) {
        server.name = take<std::string>(in, "a server");
        server.channels = take<unsigned>(in, "a server");
        for (auto* figures : {&server.read, &server.write}) {
            figures->startup_s = take<double>(in, "a server");
            figures->per_byte_s = take<double>(in, "a server");
        }
    }
    scenario.processes.resize(take<std::size_t>(in, "the processes"));
    for (auto& requests : scenario.processes) {
        const auto count = take<std::size_t>(in, "a process");
        requests.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            requests.push_back(take_request(in, scenario.servers.size()));
        }
    }
    return scenario;
}
