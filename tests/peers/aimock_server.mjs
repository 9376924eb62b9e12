// Runs aimock on a free port with the fixtures of the file named as argument: prints its address, lives until its
// standard input ends. The working directory is the one whose node_modules holds aimock.
import { createRequire } from "node:module";
import { join } from "node:path";

const { LLMock } = createRequire(join(process.cwd(), "package.json"))("@copilotkit/aimock");
const mock = new LLMock({ port: 0, chunkSize: 5, strict: true });
mock.loadFixtureFile(process.argv[2]);
await mock.start();
console.log(mock.url);
process.stdin.on("end", () => process.exit(0)).resume();
