internal import EventLoop
internal import Glibc
internal import HTTPCore

/// Listening sockets on their way from one process to another, with one owner that closes them.
public final class ListeningSockets: Sendable {
    /// The descriptors, for system calls while the owner lives.
    public let rawValues: [CInt]

    /// Takes ownership of `descriptors`.
    public init(takingOwnershipOf descriptors: [CInt]) { rawValues = descriptors }

    deinit { for descriptor in rawValues { close(descriptor) } }

    /// These, if there is at least one and all of them listen at addresses that `address` stands for; port 0 stands for any.
    public func ifListening(at address: SocketAddress) -> ListeningSockets? {
        guard let resolved = try? ResolvedAddress.all(resolving: address), !rawValues.isEmpty else { return nil }
        let wanted = resolved.map(\.storage.clientAddress.address)
        let fits = rawValues.allSatisfy { descriptor in
            guard Self.isListening(descriptor), let bound = sockaddr_storage(boundTo: descriptor)?.clientAddress else {
                return false
            }
            return wanted.contains(bound.address) && (address.port == 0 || bound.port == address.port)
        }
        return fits ? self : nil
    }

    /// The addresses in numbers at which they listen, each once.
    var addresses: [SocketAddress] {
        var found: [SocketAddress] = []
        for descriptor in rawValues {
            guard let bound = sockaddr_storage(boundTo: descriptor)?.numericAddress else { continue }
            if !found.contains(bound) { found.append(bound) }
        }
        return found
    }

    private static func isListening(_ descriptor: CInt) -> Bool {
        var listens: CInt = 0
        var size = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0
    }

    /// Copies for the loop `index` of `count`: each socket has a loop that accepts from it, each loop at least one socket.
    func copies(forLoop index: Int, of count: Int) throws(EventLoopError) -> [CInt] {
        let mine =
            index < rawValues.count
            ? stride(from: index, to: rawValues.count, by: count).map { rawValues[$0] }
            : [rawValues[index % rawValues.count]]
        var copies: [CInt] = []
        for descriptor in mine {
            do throws(EventLoopError) {
                copies.append(try OwnedDescriptor(copying: descriptor).release())
            } catch {
                for copy in copies { close(copy) }
                throw error
            }
        }
        return copies
    }
}
