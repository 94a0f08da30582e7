/// Variables of container platforms: Kubernetes writes them for every Service of a namespace, Docker for linked
/// containers.
///
/// A Service called `saltern` or `saltern-metrics` has such variables with this program's prefix. They are recognised
/// by name and value, so an operator's unknown setting is still rejected.
/// - SeeAlso: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
enum ServiceLink {
    /// Returns true if a platform has written the variable.
    static func isOne(_ name: String, _ value: String) -> Bool {
        let service = #/SALTERN(?:_[A-Z0-9]+)*/#
        guard name.prefixMatch(of: service) != nil else { return false }
        if name.hasSuffix("_SERVICE_HOST") || name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)_ADDR/#) != nil {
            return value.wholeMatch(of: #/[0-9A-Fa-f.:]+/#) != nil
        }
        if name.wholeMatch(of: #/.+_SERVICE_PORT(?:_[A-Z0-9_]+)?/#) != nil
            || name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)_PORT/#) != nil
        {
            return value.wholeMatch(of: #/[0-9]{1,5}/#) != nil
        }
        if name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)_PROTO/#) != nil {
            return ["tcp", "udp", "sctp"].contains(value)
        }
        if name.hasSuffix("_PORT") || name.wholeMatch(of: #/.+_PORT_[0-9]+_(?:TCP|UDP|SCTP)/#) != nil {
            return value.wholeMatch(of: #/(?:tcp|udp|sctp):\/\/\[?[0-9A-Fa-f.:]+\]?:[0-9]{1,5}/#) != nil
        }
        // Docker's name for a link, as in /web/saltern.
        return name.hasSuffix("_NAME") && value.wholeMatch(of: #/\/[^\/]+\/[^\/]+/#) != nil
    }
}
