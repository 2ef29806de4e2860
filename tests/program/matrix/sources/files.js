// Node: synchronous calls, promises, streams, copyFile, in the main thread and in libuv's threads.
'use strict';
const fs = require('fs');
const crypto = require('crypto');
const sum = (name) => crypto.createHash('md5').update(fs.readFileSync(name)).digest('hex');

function synchronous() {
  fs.writeFileSync('a', Buffer.alloc(300000, 'abcdefg'));
  fs.appendFileSync('a', 'tail');
  const fd = fs.openSync('a', 'r+');
  fs.writeSync(fd, 'changed', 100000);
  const buffer = Buffer.alloc(20);
  console.log(fs.readSync(fd, buffer, 0, 20, 99995), buffer.toString(), fs.fstatSync(fd).size);
  fs.ftruncateSync(fd, 250000);
  fs.fsyncSync(fd);
  fs.closeSync(fd);
  fs.copyFileSync('a', 'b');
  fs.renameSync('b', 'c');
  const status = fs.lstatSync('c');
  console.log(status.isFile(), status.isSymbolicLink(), status.size, sum('a') === sum('c'), fs.existsSync('b'));
  fs.mkdirSync('d');
  fs.cpSync('c', 'd/e');
  console.log(fs.readdirSync('.', { withFileTypes: true }).map((e) => [e.name, e.isFile(), e.isDirectory()]));
  fs.utimesSync('c', 5, 6);
  console.log(fs.statSync('c').mtimeMs, sum('d/e'));
}

async function asynchronous() {
  await fs.promises.writeFile('p', 'x'.repeat(70000));
  const file = await fs.promises.open('p', 'a+');
  await file.write('more');
  console.log((await file.stat()).size, (await file.readFile()).length);
  await file.close();
  await require('stream/promises').pipeline(fs.createReadStream('a'), require('zlib').createGzip(), fs.createWriteStream('z'));
  await require('stream/promises').pipeline(fs.createReadStream('z'), require('zlib').createGunzip(), fs.createWriteStream('u'));
  console.log(sum('u') === sum('a'));
  await Promise.all(Array.from({ length: 9 }, (_, k) => fs.promises.writeFile(`n${k}`, String(k).repeat(5000))));
  await Promise.all(Array.from({ length: 9 }, (_, k) => fs.promises.unlink(`n${k}`)));
  await fs.promises.access('none').catch((error) => console.log(error.code));
}

synchronous();
asynchronous();
