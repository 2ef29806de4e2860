// Java's ways to a file: streams, RandomAccessFile, FileChannel with transfers and locks, Files, a read-only mapping.
import java.io.*;
import java.nio.*;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.nio.file.attribute.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.stream.*;

public class Channels {
    static String sum(Path path) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(Files.readAllBytes(path)));
    }

    static void streams() throws Exception {
        try (PrintWriter out = new PrintWriter(new FileWriter("text"))) {
            for (int k = 0; k < 9999; k++) out.println("line " + k);
        }
        try (BufferedReader in = new BufferedReader(new FileReader("text"))) {
            System.out.println(in.lines().count() + " " + new File("text").length());
        }
        try (FileOutputStream out = new FileOutputStream("text", true)) { out.write("tail".getBytes()); }
        System.out.println(sum(Path.of("text")));
    }

    static void randomAccess() throws Exception {
        try (RandomAccessFile file = new RandomAccessFile("random", "rw")) {
            file.setLength(100_000); file.seek(70_000); file.writeLong(77); file.writeUTF("word"); file.seek(70_000);
            System.out.println(file.readLong() + file.readUTF() + file.getFilePointer() + " " + file.length());
            file.getFD().sync();
        }
        System.out.println(sum(Path.of("random")));
    }

    static void channels() throws Exception {
        Path copy = Path.of("copy");
        try (FileChannel in = FileChannel.open(Path.of("text")); FileChannel out = FileChannel.open(copy, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.READ)) {
            long sent = 0;
            while (sent < in.size()) sent += in.transferTo(sent, in.size() - sent, out);
            System.out.println(sent + " " + out.transferFrom(in.position(5), out.size(), 50));
            try (FileLock lock = out.lock(10, 20, false)) { System.out.println(lock.isValid() + " " + lock.isShared()); }
            ByteBuffer[] parts = {ByteBuffer.allocateDirect(10), ByteBuffer.allocate(9)};
            System.out.println(out.position(3).read(parts) + " " + out.read(ByteBuffer.allocate(7), 100) + " " + out.position());
            out.write(ByteBuffer.wrap("changed".getBytes()), 60_000); out.truncate(80_000); out.force(true);
        }
        System.out.println(sum(copy));
    }

    static void files() throws Exception {
        Path a = Path.of("text"), b = Path.of("b");
        Files.copy(a, b); Files.move(b, Path.of("c")); Files.copy(Path.of("c"), b, StandardCopyOption.COPY_ATTRIBUTES);
        Files.writeString(Path.of("d"), "written", StandardCharsets.UTF_8); Files.write(Path.of("d"), List.of("x", "y"), StandardOpenOption.APPEND);
        System.out.println(Files.readString(Path.of("d")) + Files.isRegularFile(b) + Files.isSymbolicLink(b) + Files.mismatch(a, b) + Files.size(b));
        Files.setPosixFilePermissions(b, PosixFilePermissions.fromString("rw-r-----")); Files.setLastModifiedTime(b, FileTime.fromMillis(1_600_000_000_000L));
        System.out.println(PosixFilePermissions.toString(Files.getPosixFilePermissions(b)) + Files.getLastModifiedTime(b) + Files.readAttributes(b, BasicFileAttributes.class).isRegularFile());
        try (Stream<Path> list = Files.walk(Path.of("."))) { System.out.println(list.filter(Files::isRegularFile).map(Path::toString).sorted().collect(Collectors.toList())); }
        Path kept = Files.createTempFile(Path.of("."), "t", null); Files.delete(kept); Files.deleteIfExists(Path.of("c")); System.out.println(Files.exists(kept));
        try { Files.createFile(b); } catch (FileAlreadyExistsException e) { System.out.println("exists"); }
    }

    static void mapped() throws Exception {
        try (FileChannel in = FileChannel.open(Path.of("text"))) {
            MappedByteBuffer map = in.map(FileChannel.MapMode.READ_ONLY, 0, in.size());
            long total = 0;
            while (map.hasRemaining()) total = total * 31 + map.get();
            System.out.println(total);
            MappedByteBuffer own = in.map(FileChannel.MapMode.READ_ONLY, 5000, 100);
            System.out.println(own.get(7));
        }
    }

    static void mappedWritable() throws Exception {
        try (FileChannel file = FileChannel.open(Path.of("text"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            file.map(FileChannel.MapMode.READ_WRITE, 0, 5000).put(7, (byte) 7);
        }
    }

    public static void main(String[] words) throws Exception {
        if (words.length > 0) { mappedWritable(); return; }
        streams(); randomAccess(); channels(); files(); mapped();
    }
}
