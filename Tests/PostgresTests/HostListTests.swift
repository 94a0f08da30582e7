import Testing

@testable import Postgres

@Suite struct HostListTests {
    private func values(_ options: HostList.Options?) -> [String: String]? {
        options.map { Dictionary($0.map { ($0.keyword, $0.value) }) { _, last in last } }
    }

    @Test func `only names are looked up`() {
        let hosts = HostList([("host", "one.example,127.0.0.1,::1,/run/postgresql,two.example"), ("port", "1,2,3,4,5")])
        #expect(hosts.names == ["one.example", "two.example"])
        #expect(HostList([("host", "name"), ("hostaddr", "10.0.0.1")]).names.isEmpty)
        #expect(HostList([("dbname", "x")]).names.isEmpty)
    }

    @Test func `every address of a name becomes a server, with its own port and its name for TLS`() {
        let hosts = HostList([("dbname", "x"), ("host", "a,10.0.0.9,gone,/run"), ("port", "1,2,3,4")])
        let options = values(hosts.options(addresses: ["a": ["10.0.0.1", "fd00::1"]], serverIndex: 0))
        #expect(
            options == [
                "dbname": "x", "host": "a,a,10.0.0.9,/run", "hostaddr": "10.0.0.1,fd00::1,10.0.0.9,",
                "port": "1,1,2,4",
            ])
    }

    @Test func `the servers take turns in being the first`() {
        let hosts = HostList([("host", "10.0.0.1,10.0.0.2"), ("port", "5432")])
        #expect(values(hosts.options(addresses: [:], serverIndex: 3))?["host"] == "10.0.0.2,10.0.0.1")
        #expect(values(hosts.options(addresses: [:], serverIndex: 3))?["port"] == "5432,5432")
    }

    @Test func `who looks at one server names no other`() {
        let hosts = HostList([("host", "10.0.0.1,10.0.0.2"), ("port", "1,2")])
        #expect(values(hosts.options(addresses: [:], serverIndex: 3, isAlone: true))?["hostaddr"] == "10.0.0.2")
        #expect(values(hosts.options(addresses: [:], serverIndex: 3, isAlone: true))?["port"] == "2")
    }

    @Test func `when no name has an address there is nothing to connect to`() {
        #expect(HostList([("host", "gone")]).options(addresses: [:], serverIndex: 0) == nil)
    }
}
