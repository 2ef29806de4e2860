"""Programs in other languages: C++, Java, Node; Go and static programs, which no preloaded library can reach."""

from __future__ import annotations

from .case import Case, Refusal

PAST = Refusal(
    "[Nn]o such file|[Bb]ad file descriptor",
    "calls the kernel past the C library",
)

CASES = [
    Case(
        name="cpp",
        job="fstream, filesystem, FILE*",
        needs=("g++",),
        sources=("streams.cpp",),
        build="g++ -std=c++17 -O1 -o streams streams.cpp",
        script='"$W/streams"',
    ),
    Case(
        name="cpp-static-libstdcxx",
        job="fstream with libstdc++ linked statically",
        needs=("g++",),
        sources=("streams.cpp",),
        build="g++ -std=c++17 -O1 -static-libstdc++ -D_FORTIFY_SOURCE=2 -D_FILE_OFFSET_BITS=64 -o streams streams.cpp",
        script='"$W/streams"',
        heavy=True,
    ),
    Case(
        name="java",
        job="streams, RandomAccessFile, FileChannel, transferTo, locks, Files, read-only maps",
        needs=("java", "javac"),
        version="java -version",
        sources=("Channels.java",),
        build="javac Channels.java",
        script='java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$W" Channels',
    ),
    Case(
        name="java-map-write",
        job="FileChannel.map READ_WRITE",
        needs=("java", "javac"),
        version="java -version",
        sources=("Channels.java",),
        build="javac Channels.java",
        script='head -c 9000 "$S/text" > text; java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$W" Channels write',
    ),
    Case(
        name="node",
        job="fs: sync, promises, streams, copyFile",
        needs=("node",),
        sources=("files.js",),
        script='node "$W/files.js"',
        volatile=("z",),
    ),
    Case(
        name="go-static",
        job="os.ReadFile, os.WriteFile, built without cgo",
        needs=("go",),
        version="go version",
        sources=("files.go",),
        build="CGO_ENABLED=0 go build -o files files.go",
        script='cat "$S/text" > a; "$W/files"',
        refused=PAST,
    ),
    Case(
        name="go-stdin",
        job="reading a standard input that is a managed file",
        needs=("go",),
        version="go version",
        sources=("files.go",),
        build="CGO_ENABLED=0 go build -o files files.go",
        script='cat "$S/text" > a; "$W/files" stdin < a',
        refused=PAST,
    ),
    Case(
        name="go-cgo",
        job="os.ReadFile, os.WriteFile, linked dynamically",
        needs=("go", "gcc"),
        version="go version",
        sources=("files.go",),
        build="CGO_ENABLED=1 go build -ldflags=-linkmode=external -o files files.go; ldd files",
        script='cat "$S/text" > a; "$W/files"',
        refused=PAST,
    ),
    Case(
        name="busybox",
        job="busybox static: cat",
        needs=("busybox",),
        version="busybox",
        script='cat "$S/text" > a; busybox cat a | md5sum; busybox cat a > /dev/null',
        refused=PAST,
    ),
    Case(
        name="busybox-stdin",
        job="busybox static: standard input and output on managed files",
        needs=("busybox",),
        version="busybox",
        script='cat "$S/text" > a; busybox wc -l < a; busybox cat "$S/text" > b',
        refused=PAST,
    ),
    Case(
        name="without-environment",
        job="env -i cat: a child that loses the library",
        needs=("env",),
        script='cat "$S/text" > a; env -i "$(command -v cat)" a | md5sum; echo; env -i PATH="$PATH" md5sum < a',
        remark="exec keeps the library in a fresh environment",
    ),
]
