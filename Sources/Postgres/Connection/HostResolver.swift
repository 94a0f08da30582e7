internal import EventLoop
internal import Glibc

/// Looks host names up on a thread that lives as long as the look-up, because the system's resolver blocks.
enum HostResolver {
    private final class Job: Sendable {
        let names: [String]
        let completion: @Sendable ([String: [String]]) -> Void

        init(names: [String], completion: @escaping @Sendable ([String: [String]]) -> Void) {
            self.names = names
            self.completion = completion
        }
    }

    /// Calls `completion` on `loop` with the addresses of each name that has any.
    static func resolve(
        _ names: [String], loop: EventLoop, completion: @escaping @Sendable ([String: [String]]) -> Void
    ) {
        let job = Job(names: names) { addresses in loop.schedule { completion(addresses) } }
        let context = Unmanaged.passRetained(job)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let job = Unmanaged<Job>.fromOpaque(context).takeRetainedValue()
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                var addresses: [String: [String]] = [:]
                for name in job.names { addresses[name] = HostResolver.addresses(of: name) }
                job.completion(addresses)
                return nil
            }, context.toOpaque())
        if code == 0 {
            pthread_detach(thread)
        } else {
            context.release()
            job.completion([:])
        }
    }

    /// The addresses of `name` in the order the system prefers; `nil` when there are none. Blocks.
    private static func addresses(of name: String) -> [String]? {
        var hints = addrinfo()
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return nil }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next?.pointee {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let code = getnameinfo(
                entry.ai_addr, entry.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            if code == 0 {
                let length = text.firstIndex(of: 0) ?? text.count
                addresses.append(String(decoding: text[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self))
            }
            next = entry.ai_next
        }
        return addresses.isEmpty ? nil : addresses
    }
}
