import SalternServer
import Testing
import WebhookDelivery

@Suite struct CurlWebhookClientTests {
    private func request(_ url: String, _ fields: [(name: String, value: String)] = []) -> WebhookRequest {
        WebhookRequest(url: url, fields: fields, body: Array("{}".utf8))
    }

    private func with(_ body: (CurlWebhookClient) async throws -> Void) async throws {
        let client = try #require(CurlWebhookClient())
        try await body(client)
        client.stop()
    }

    @Test(arguments: ["http://127.0.0.1:9/", "file:///etc/hostname", "ftp://127.0.0.1/", "https://", "not a URL"])
    func `only https is used`(_ url: String) async throws {
        try await with { client in
            #expect(await client.post(request(url)) == .failed(.unacceptable))
        }
    }

    @Test func `a receiver that is not there is unreachable`() async throws {
        // The port of a service that nothing has.
        try await with { client in
            #expect(await client.post(request("https://127.0.0.1:9/")) == .failed(.unreachable))
        }
    }

    @Test func `a field cannot bring another one`() async throws {
        try await with { client in
            let outcome = await client.post(request("https://127.0.0.1:9/", [(name: "a", value: "b\r\nc: d")]))
            #expect(outcome == .failed(.unacceptable))
        }
    }

    @Test func `a task that is cancelled, and a client that has stopped, post nothing`() async throws {
        let client = try #require(CurlWebhookClient())
        let task = Task {
            try? await Task.sleep(for: .seconds(3_600))
            // An address without a route keeps the connection waiting.
            return await client.post(request("https://192.0.2.1/"))
        }
        task.cancel()
        #expect(await task.value == .failed(.cancelled))
        client.stop()
        #expect(await client.post(request("https://127.0.0.1:9/")) == .failed(.cancelled))
    }
}
