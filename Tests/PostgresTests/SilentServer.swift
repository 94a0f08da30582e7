import Foundation

@testable import SalternTesting

/// A socket where PostgreSQL could be and that takes connections and says nothing, as a server does that was stopped.
struct SilentServer {
    let directory: String
    private let listener: CInt

    init() throws {
        var template = Array("/tmp/saltern-silent-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template) else { throw CuttingProxy.Failure(call: "mkdtemp") }
        directory = String(cString: path)
        listener = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        let address = try CuttingProxy.address(directory + "/.s.PGSQL.5432")
        guard CuttingProxy.withAddress(address, { bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
            throw CuttingProxy.Failure(call: "listen")
        }
    }

    func stop() {
        close(listener)
        try? FileManager.default.removeItem(atPath: directory)
    }
}
