"""The client in one file: what it is made of, its types, and a page of another origin that uses it."""

import json
import re
import subprocess
import sys

from aiohttp import web

from cubecast import __version__
from support.bus import Bus
from support.sources import ROOT
from support.websockets import endpoint

NPM = ROOT / "npm"
TYPES = (NPM / "index.d.ts").read_text()
OPEN = """async (node) => {
  const module = await import(`${node}/cubecast.min.js`);
  const client = await module.connect(`${node}/ws`);
  const heard = client.subscribe("greetings");
  await heard.ready;
  await client.publish("greetings", { text: "hello" }, { headers: { by: "ann" }, wait: "stable" });
  const message = await heard.next();
  const service = client.serve("double", (message) => 2 * message.data);
  await service.ready;
  const answer = await client.request("double", 21);
  await client.close();
  return [message.data, message.headers, message instanceof module.Message, answer.data, Object.keys(module)];
}"""


def test_it_is_made_of_the_modules_as_they_are():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "javascript.py", "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_of_another_origin_uses_it(chromium):
    async def elsewhere(request):
        return web.Response(text="<!doctype html><title>elsewhere</title>", content_type="text/html")

    async def main():
        app = web.Application()
        app.add_routes([web.get("/", elsewhere), web.get("/favicon.ico", elsewhere)])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with endpoint(Bus(), origins=(origin,)) as node, chromium.page(origin) as page:
                return await page.evaluate(OPEN, node.origin)
        finally:
            await runner.cleanup()

    data, headers, is_message, answer, names = chromium.run(main())
    assert (data, headers, is_message, answer) == ({"text": "hello"}, {"by": "ann"}, True, 42)
    assert set(names) == set(re.findall(r"(?m)^export (?:class|function) (\w+)", TYPES))


def test_the_types_know_what_the_classes_have():
    sources = "\n".join(path.read_text() for path in (ROOT / "src/cubecast/net/web/static/client").glob("*.js"))
    for name in ("Client", "Subscription", "Service", "Message", "Gap"):
        (typed,) = re.findall(rf"(?ms)^export class {name}\b.*?^}}", TYPES)
        (written,) = re.findall(rf"(?ms)^export class {name}\b.*?^}}", sources)
        told = set(re.findall(r"(?m)^  (?:get |readonly )?([a-z]\w*)[(:]", typed)) - {"private"}
        has = set(re.findall(r"(?m)^  (?:async |get )?([a-z]\w*)\(", written))
        has |= set(re.findall(r"this\.([a-z]\w*) = ", written))
        assert told and told <= has, (name, told - has)


def test_the_package_is_complete_and_of_this_version():
    package = json.loads((NPM / "package.json").read_text())
    assert package["version"] == __version__
    named = {package["main"], package["types"], *package["exports"]["."].values(), *package["files"]}
    assert all((NPM / one).is_file() for one in named)
