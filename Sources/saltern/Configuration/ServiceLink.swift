/// Variables that Kubernetes writes into each container for every Service of its namespace, and Docker for linked containers.
///
/// A Service called `saltern`, or `saltern-metrics`, has such variables in the namespace of this program's settings. They are
/// recognised by name and value, so that a setting that an operator has made up is still refused.
/// - SeeAlso: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
enum ServiceLink {
    /// Returns whether a platform has written the variable.
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
        // Docker's name of a link, as in /web/saltern.
        return name.hasSuffix("_NAME") && value.wholeMatch(of: #/\/[^\/]+\/[^\/]+/#) != nil
    }
}
