# Perl's file operations: modes, locks, seeks, sysopen, truncate, File::Copy, directories, times.
use strict;
use warnings;
use Fcntl qw(:DEFAULT :flock :seek);
use File::Copy;

open(my $f, "+<", "a") or die "open: $!";
flock($f, LOCK_EX) or die "flock: $!";
seek($f, 100, SEEK_SET);
read($f, my $part, 20);
print "$part\n";
seek($f, 0, SEEK_END);
print $f "end\n";
print tell($f), "\n";
close($f);
print -s "a", " ", (-f "a" ? "file" : "other"), " ", (-l "a" ? "link" : "none"), "\n";

copy("a", "b") or die "copy: $!";
move("b", "c") or die "move: $!";
sysopen(my $g, "d", O_RDWR | O_CREAT | O_EXCL) or die "sysopen: $!";
syswrite($g, "x" x 70000);
sysseek($g, 5, SEEK_SET);
sysread($g, my $read, 3);
print "$read\n";
truncate($g, 1000);
close($g);

opendir(my $directory, ".") or die "opendir: $!";
print join(" ", sort grep { -f } readdir $directory), "\n";
open(my $appended, ">>", "d") or die "append: $!";
print $appended "tail";
close($appended);
print -s "d", "\n";
utime(5, 6, "d");
print((stat "d")[9], "\n");
unlink("d") or die "unlink: $!";
local $/;
open(my $whole, "<", "c") or die "open: $!";
print length(<$whole>), "\n";
