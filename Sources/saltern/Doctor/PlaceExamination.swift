import Foundation
import HTTPServer
import TransportSecurity

/// Checks the server's addresses and the path for handovers.
struct PlaceExamination {
    let configuration: ServeConfiguration

    func findings() -> [Finding] {
        var findings = [examine("listen", "SALTERN_LISTEN", configuration.listen)]
        if let address = configuration.metricsListen {
            findings.append(examine("metrics_listen", "SALTERN_METRICS_LISTEN", address))
        }
        if let path = configuration.handoverSocket { findings.append(examineHandover(path)) }
        return findings
    }

    private func examine(_ subject: String, _ setting: String, _ address: SocketAddress) -> Finding {
        do throws(ListenError) {
            let missing = try address.requireOwnHost()
            // The service's unit may grant a right that this process does not have, which is not visible from here.
            guard address.isPermitted else {
                return Finding(
                    subject, .warning,
                    "\(setting): this process may not listen on port \(address.port): take one from 1024 on, or give the unit "
                        + "AmbientCapabilities= and CapabilityBoundingSet=CAP_NET_BIND_SERVICE")
            }
            guard missing.isEmpty || address.host == "*" || address.host == "::" else {
                return Finding(
                    subject, .warning,
                    "\(setting): this machine does not have all addresses of \(address): nothing is served at "
                        + missing.map(\.description).joined(separator: ", "))
            }
            return Finding(subject, .fine, "\(setting): this machine has the address of \(address)")
        } catch {
            return Finding(subject, .problem, "\(setting): \(error)")
        }
    }

    private func examineHandover(_ path: String) -> Finding {
        let subject = "handover"
        let setting = "SALTERN_HANDOVER_SOCKET"
        do {
            try HandoverPlace.requireRoom(at: path)
        } catch {
            return Finding(subject, .problem, "\(error)")
        }
        let folder = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
        // systemd's RuntimeDirectory= creates it when the server starts.
        guard FileManager.default.fileExists(atPath: folder) else {
            return Finding(
                subject, .warning,
                "\(setting): there is no folder \(folder): unless RuntimeDirectory= of the unit makes it, make it")
        }
        guard faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0 else {
            return Finding(
                subject, .problem,
                "\(setting): nothing can be written in \(folder): \(String(cString: strerror(errno))); the server needs to "
                    + "make its socket there")
        }
        return Finding(subject, .fine, "\(setting): there is room at \(path) for the server's socket")
    }
}
