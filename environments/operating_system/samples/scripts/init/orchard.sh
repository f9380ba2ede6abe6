#!/bin/bash

mkdir -p /srv/orchard/{north,south/terrace,.shed}
for tree in apple pear plum; do
  echo "$tree" > "/srv/orchard/north/$tree.tree"
done
echo quince > /srv/orchard/south/quince.tree
echo medlar > /srv/orchard/south/terrace/medlar.tree
echo rake > /srv/orchard/.shed/rake.tool
echo list > /srv/orchard/.inventory
echo none > /srv/orchard/north/none.txt
