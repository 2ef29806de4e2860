// Replays accesses on SimGrid: the same servers, links and requests as Stripewise's own simulator, in somebody else's engine.
//
// Client processes are actors on their nodes, closed loop: a request's accesses begin together, each carried by an actor of its own, and the next request
// waits for the last of them; a barrier parts the reads from the writes. A device is a semaphore of as many slots as it has channels (first come, first
// served) before a SimGrid disk per channel. The network is SimGrid's: flows share links by max-min fairness, where Stripewise's links serve them in order.

#include "scenario.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

// A star: every node and server has a link, its directions apart; all cross a switch that costs nothing.
class Platform {
public:
    Platform(Scenario& scenario, sg4::NetZone* zone) : network_(scenario.network) {
        const auto per_node = std::max(1U, network_.processes_per_node);
        const auto count = (scenario.processes.size() + per_node - 1) / per_node;
        std::vector<Station> stations;
        for (std::size_t i = 0; i < count; ++i) {
            stations.push_back(station(zone, "node" + std::to_string(i), 0));
            nodes_.push_back(stations.back().host);
        }
        for (auto& server : scenario.servers) {
            stations.push_back(station(zone, "server-" + server.name, network_.establish_s));
            server.host = stations.back().host;
            server.slots = sg4::Semaphore::create(server.channels);
            for (unsigned i = 0; i < server.channels; ++i) {
                const auto name = server.name + "." + std::to_string(i);
                server.idle.push_back(server.host->create_disk(name, 1 / server.read.per_byte_s, 1 / server.write.per_byte_s)->seal());
            }
        }
        for (std::size_t i = 0; network_.present && i < count; ++i) {
            for (std::size_t k = count; k < stations.size(); ++k) {
                route(zone, stations[i], stations[k]);
                route(zone, stations[k], stations[i]);
            }
        }
        zone->seal();
    }

    sg4::Host* node(std::size_t process) const { return nodes_[process / std::max(1U, network_.processes_per_node)]; }

private:
    struct Station {
        sg4::Host* host;
        sg4::Link* out;
        sg4::Link* in;
    };

    Station station(sg4::NetZone* zone, const std::string& name, double latency_s) {
        Station made{zone->create_host(name, 1e9)->seal(), nullptr, nullptr};
        if (network_.present) {
            made.out = zone->create_link(name + ".out", 1 / network_.per_byte_s)->set_latency(latency_s)->seal();
            made.in = zone->create_link(name + ".in", 1 / network_.per_byte_s)->set_latency(latency_s)->seal();
        }
        return made;
    }

    static void route(sg4::NetZone* zone, const Station& from, const Station& to) {
        zone->add_route(from.host->get_netpoint(), to.host->get_netpoint(), nullptr, nullptr,
                        {sg4::LinkInRoute(from.out), sg4::LinkInRoute(to.in)}, false);
    }

    const Network network_;
    std::vector<sg4::Host*> nodes_;
};

void serve(Server& server, const Access& access, bool write) {
    server.slots->acquire();
    auto* disk = server.idle.back();
    server.idle.pop_back();
    const auto begin_s = sg4::Engine::get_clock();
    const auto& figures = write ? server.write : server.read;
    // What continues the last access is spared its startup, as emulated devices do it.
    if (access.address != server.next_address) {
        ++server.startups;
        sg4::this_actor::sleep_for(figures.startup_s);
    }
    server.next_address = access.address + access.bytes;
    if (write) {
        disk->write(access.bytes);
    } else {
        disk->read(access.bytes);
    }
    server.busy_s += sg4::Engine::get_clock() - begin_s;
    ++server.accesses;
    server.idle.push_back(disk);
    server.slots->release();
}

// What a client process and the actors that carry its accesses share.
struct Client {
    sg4::Host* node;
    const std::vector<Request>* requests;
    const Request* current = nullptr;
    std::vector<sg4::SemaphorePtr> go;
    sg4::SemaphorePtr done = sg4::Semaphore::create(0);
    double end_s = 0;
    double latency_sum_s = 0;
};

void carry(Scenario& scenario, Client& client, std::size_t number) {
    for (;;) {
        client.go[number]->acquire();
        const auto& access = client.current->accesses[number];
        auto& server = scenario.servers[access.server];
        const bool write = client.current->write;
        if (scenario.network.present && write) {
            sg4::Comm::sendto(client.node, server.host, access.bytes);
        }
        serve(server, access, write);
        if (scenario.network.present && !write) {
            sg4::Comm::sendto(server.host, client.node, access.bytes);
        }
        client.done->release();
    }
}

// All begin a phase at once, but in their order, as there: `offset_s` sets them a few ns apart.
void run_client(Client& client, sg4::Barrier& phase, double offset_s) {
    sg4::this_actor::sleep_for(offset_s);
    for (const auto& request : *client.requests) {
        if (client.current != nullptr && client.current->write != request.write) {
            phase.wait();
            sg4::this_actor::sleep_for(offset_s);
        }
        const auto begin_s = sg4::Engine::get_clock();
        client.current = &request;
        for (std::size_t i = 0; i < request.accesses.size(); ++i) {
            client.go[i]->release();
        }
        for (std::size_t i = 0; i < request.accesses.size(); ++i) {
            client.done->acquire();
        }
        client.end_s = sg4::Engine::get_clock();
        client.latency_sum_s += client.end_s - begin_s;
    }
}

void deploy(Scenario& scenario, const Platform& platform, std::vector<std::unique_ptr<Client>>& clients) {
    const auto phase = sg4::Barrier::create(static_cast<unsigned>(scenario.processes.size()));
    for (std::size_t process = 0; process < scenario.processes.size(); ++process) {
        clients.push_back(std::make_unique<Client>());
        auto& client = *clients.back();
        client.node = platform.node(process);
        client.requests = &scenario.processes[process];
        std::size_t most = 0;
        for (const auto& request : *client.requests) {
            most = std::max(most, request.accesses.size());
        }
        for (std::size_t i = 0; i < most; ++i) {
            client.go.push_back(sg4::Semaphore::create(0));
            sg4::Actor::create("carrier", client.node, [&scenario, &client, i] { carry(scenario, client, i); })->daemonize();
        }
        const double offset_s = 2e-9 * static_cast<double>(process);
        sg4::Actor::create("client", client.node, [&client, phase, offset_s] { run_client(client, *phase, offset_s); });
    }
}

void report(const Scenario& scenario, const std::vector<std::unique_ptr<Client>>& clients, double host_s) {
    double end_s = 0;
    double latency_sum_s = 0;
    std::size_t requests = 0;
    for (const auto& client : clients) {
        end_s = std::max(end_s, client->end_s);
        latency_sum_s += client->latency_sum_s;
        requests += client->requests->size();
    }
    std::cout.precision(12);
    std::cout << "{\"seconds\": " << end_s << ", \"latency_mean_s\": " << latency_sum_s / static_cast<double>(std::max<std::size_t>(1, requests))
              << ", \"host_s\": " << host_s << ", \"servers\": [";
    const char* comma = "";
    for (const auto& server : scenario.servers) {
        std::cout << comma << "{\"name\": \"" << server.name << "\", \"busy_s\": " << server.busy_s << ", \"accesses\": " << server.accesses
                  << ", \"startups\": " << server.startups << "}";
        comma = ", ";
    }
    std::cout << "]}\n";
}

}  // namespace

int main(int argc, char** argv) {
    sg4::Engine engine(&argc, argv);
    if (argc != 2) {
        std::cerr << "usage: replay ACCESSES [--cfg=...]; compare.py writes the file\n";
        return 2;
    }
    try {
        std::ifstream in(argv[1]);
        if (!in) {
            throw std::runtime_error("cannot be opened; give what compare.py wrote");
        }
        auto scenario = take_scenario(in);
        const Platform platform(scenario, sg4::create_full_zone("cluster"));
        std::vector<std::unique_ptr<Client>> clients;
        const auto begun = std::chrono::steady_clock::now();
        deploy(scenario, platform, clients);
        engine.run();
        report(scenario, clients, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    } catch (const std::exception& error) {
        std::cerr << "replay: " << argv[1] << ": " << error.what() << "\n";
        return 1;
    }
    return 0;
}
